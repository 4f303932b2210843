#include "formats/registry.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "formats/chatml.h"
#include "formats/harmony.h"
#include "formats/llama3.h"
#include "formats/mistral.h"

namespace briar {
namespace {

using MakeFormat = Result<std::shared_ptr<const Format>> (*)(std::shared_ptr<const Tokenizer>,
                                                             std::string_view chat_template);

struct Entry {
  std::string_view name;
  std::string_view marker;      // in the template of every model that has this format
  std::string_view model_type;  // of the models whose format is known by their type
  MakeFormat make;
};

// An explicit table: the linker would drop self-registering objects of a static library.
constexpr Entry kFormats[] = {
    {"harmony", "<|channel|>", "gpt_oss", make_harmony},
    {"chatml", "<|im_start|>", "qwen2", make_chatml},
    {"llama3", "<|start_header_id|>", "llama", make_llama3},
    {"mistral", "[INST]", "mistral", make_mistral},
};

std::string known_names() {
  std::string list;
  for (const Entry& entry : kFormats) {
    if (!list.empty()) list += ", ";
    list += entry.name;
  }
  return list;
}

const Entry* entry_for(const ModelChatFacts& facts, const Tokenizer& tokenizer) {
  for (const Entry& entry : kFormats) {
    if (facts.chat_template.find(entry.marker) != std::string::npos) return &entry;
  }
  for (const Entry& entry : kFormats) {
    if (facts.chat_template.empty() && tokenizer.special_id(entry.marker)) return &entry;
  }
  for (const Entry& entry : kFormats) {
    if (entry.model_type == facts.model_type) return &entry;
  }
  return nullptr;
}

}  // namespace

Result<std::shared_ptr<const Format>> make_format(std::string_view name,
                                                  std::shared_ptr<const Tokenizer> tokenizer,
                                                  std::string_view chat_template) {
  for (const Entry& entry : kFormats) {
    if (entry.name == name) return entry.make(std::move(tokenizer), chat_template);
  }
  return make_error("no chat format is called '{}'; known: {}", name, known_names());
}

Result<std::shared_ptr<const Format>> make_format_for_model(
    const ModelChatFacts& facts, std::shared_ptr<const Tokenizer> tokenizer) {
  CHECK(tokenizer != nullptr, "a format needs a tokenizer");
  if (const Entry* entry = entry_for(facts, *tokenizer)) {
    return entry->make(std::move(tokenizer), facts.chat_template);
  }
  return make_error("no chat format for models of type '{}' with this chat template; known: {}",
                    facts.model_type, known_names());
}

Result<std::shared_ptr<const Format>> make_format_for_model(
    std::string_view model_type, std::shared_ptr<const Tokenizer> tokenizer) {
  return make_format_for_model(ModelChatFacts{.model_type = std::string(model_type)},
                               std::move(tokenizer));
}

}  // namespace briar
