#include "formats/registry.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "formats/harmony.h"

namespace briar {
namespace {

using MakeFormat = Result<std::shared_ptr<const Format>> (*)(std::shared_ptr<const Tokenizer>);

struct Entry {
  std::string_view name;
  std::string_view model_type;
  MakeFormat make;
};

// An explicit table: the linker would drop self-registering objects of a static library.
constexpr Entry kFormats[] = {
    {"harmony", "gpt_oss", make_harmony},
};

std::string known(std::string_view Entry::*column) {
  std::string list;
  for (const Entry& entry : kFormats) {
    if (!list.empty()) list += ", ";
    list += entry.*column;
  }
  return list;
}

}  // namespace

Result<std::shared_ptr<const Format>> make_format(std::string_view name,
                                                  std::shared_ptr<const Tokenizer> tokenizer) {
  for (const Entry& entry : kFormats) {
    if (entry.name == name) return entry.make(std::move(tokenizer));
  }
  return make_error("no chat format is called '{}'; known: {}", name, known(&Entry::name));
}

Result<std::shared_ptr<const Format>> make_format_for_model(
    std::string_view model_type, std::shared_ptr<const Tokenizer> tokenizer) {
  for (const Entry& entry : kFormats) {
    if (entry.model_type == model_type) return entry.make(std::move(tokenizer));
  }
  return make_error("no chat format for models of type '{}'; known: {}", model_type,
                    known(&Entry::model_type));
}

}  // namespace briar
