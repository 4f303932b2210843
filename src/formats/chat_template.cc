#include "formats/chat_template.h"

#include <boost/json.hpp>

#include "base/file.h"
#include "base/json.h"

namespace briar {
namespace {

namespace bj = boost::json;

// Several templates are a list of {"name", "template"}.
const bj::string* find_text(const bj::value& value) {
  if (const bj::string* text = value.if_string()) return text;
  const bj::array* list = value.if_array();
  if (list == nullptr) return nullptr;
  const bj::string* first = nullptr;
  for (const bj::value& item : *list) {
    const bj::object* object = item.if_object();
    const bj::value* name = object != nullptr ? object->if_contains("name") : nullptr;
    const bj::value* text = object != nullptr ? object->if_contains("template") : nullptr;
    if (name == nullptr || text == nullptr || !name->is_string() || !text->is_string()) continue;
    if (first == nullptr) first = &text->get_string();
    if (name->get_string() == "default") return &text->get_string();
  }
  return first;
}

}  // namespace

Result<std::string> read_chat_template(const std::string& model_directory) {
  const std::string jinja = model_directory + "/chat_template.jinja";
  if (file_exists(jinja)) {
    const auto file = MappedFile::open(jinja);
    if (!file) return file.error();
    return std::string(file->text());
  }
  const std::string config = model_directory + "/tokenizer_config.json";
  if (!file_exists(config)) return std::string();
  const auto parsed = json::parse_file(config);
  if (!parsed) return parsed.error();
  const bj::object* object = parsed->if_object();
  const bj::value* value = object != nullptr ? object->if_contains("chat_template") : nullptr;
  const bj::string* text = value != nullptr ? find_text(*value) : nullptr;
  return text != nullptr ? std::string(*text) : std::string();
}

}  // namespace briar
