#include "formats/format_records.h"

#include <boost/json.hpp>
#include <limits>
#include <string>
#include <utility>

#include "formats/message_json.h"

namespace briar {
namespace {

namespace bj = boost::json;

const bj::value* find(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Result<std::optional<std::string>> read_text(const bj::object& object, std::string_view key) {
  const bj::value* value = find(object, key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return make_error("'{}' is not a string", key);
  return std::optional(std::string(std::string_view(value->get_string())));
}

Result<std::optional<bool>> read_flag(const bj::object& object, std::string_view key) {
  const bj::value* value = find(object, key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_bool()) return make_error("'{}' is not true or false", key);
  return std::optional(value->get_bool());
}

Result<std::optional<Role>> read_role(const bj::object& object, std::string_view key) {
  auto word = read_text(object, key);
  if (!word) return word.error();
  if (!word->has_value()) return std::optional<Role>();
  const std::optional<Role> role = role_from_word(**word);
  if (!role) return make_error("'{}' is '{}', which is not a role", key, **word);
  return role;
}

Result<RenderMode> read_mode(const bj::object& object) {
  auto word = read_text(object, "mode");
  if (!word) return word.error();
  const std::string mode = word->value_or("completion");
  if (mode == "completion") return RenderMode::kCompletion;
  if (mode == "conversation") return RenderMode::kConversation;
  if (mode == "training") return RenderMode::kTraining;
  if (mode == "message") return RenderMode::kMessage;
  return make_error("'mode' is '{}', not completion, conversation, training or message", mode);
}

Result<RenderOptions> read_render_options(const bj::object& object) {
  RenderOptions options;
  auto mode = read_mode(object);
  if (!mode) return mode.error();
  options.mode = *mode;
  auto role = read_role(object, "next_turn_role");
  if (!role) return role.error();
  options.next_role = role->value_or(Role::kAssistant);
  auto drop = read_flag(object, "auto_drop_analysis");
  if (!drop) return drop.error();
  options.drop_analysis = *drop;
  auto has_function_tools = read_flag(object, "conversation_has_function_tools");
  if (!has_function_tools) return has_function_tools.error();
  options.has_function_tools = has_function_tools->value_or(false);
  return options;
}

Result<std::vector<int64_t>> read_ids(const bj::object& object) {
  const bj::value* list = find(object, "tokens");
  if (list == nullptr || !list->is_array()) return make_error("no list 'tokens'");
  std::vector<int64_t> ids;
  for (const bj::value& item : list->get_array()) {
    if (!item.is_int64()) return make_error("token {} is not a whole number", ids.size());
    ids.push_back(item.get_int64());
  }
  return ids;
}

template <class Ids>
bj::array to_array(const Ids& ids) {
  return bj::array(ids.begin(), ids.end());
}

// Records echo their name, whatever it is.
Result<bj::object> begin_record(const bj::value& line) {
  if (!line.is_object()) return make_error("the line is not a JSON object");
  bj::object out;
  if (const bj::value* name = find(line.get_object(), "name")) out["name"] = *name;
  return out;
}

Result<std::vector<Message>> read_messages(const bj::object& object) {
  if (const bj::value* conversation = find(object, "conversation")) {
    return conversation_from_json(*conversation);
  }
  auto message = message_from_json(*find(object, "message"));
  if (!message) return message.error();
  return std::vector<Message>{std::move(*message)};
}

}  // namespace

Result<bj::object> render_record(const Format& format, const bj::value& line, bool strict_library) {
  auto out = begin_record(line);
  if (!out) return out;
  const bj::object& object = line.get_object();
  auto options = read_render_options(object);
  if (!options) return options.error();
  options->strict_library = strict_library;
  if (find(object, "conversation") == nullptr && find(object, "message") == nullptr) {
    return make_error("neither 'conversation' nor 'message' is there");
  }
  const auto messages = read_messages(object);
  const auto tokens = messages ? format.render(*messages, *options)
                               : Result<std::vector<int32_t>>(messages.error());
  if (!tokens) {
    (*out)["error"] = tokens.error().message;
    return out;
  }
  (*out)["tokens"] = to_array(*tokens);
  (*out)["text"] = format.text_of(*tokens);
  return out;
}

Result<bj::object> parse_record(const Format& format, const bj::value& line, bool strict_library) {
  auto out = begin_record(line);
  if (!out) return out;
  const bj::object& object = line.get_object();
  const auto ids = read_ids(object);
  if (!ids) return ids.error();
  TranscriptOptions options;
  options.strict_library = strict_library;
  const auto role = read_role(object, "role");
  if (!role) return role.error();
  options.role = *role;
  for (const auto& [key, target] :
       {std::pair{"strict", &options.is_strict_grammar}, std::pair{"process_eos", &options.has_end},
        std::pair{"continue_on_error", &options.continue_on_error}}) {
    const auto flag = read_flag(object, key);
    if (!flag) return flag.error();
    *target = flag->value_or(*target);
  }
  const Transcript transcript = format.parse(*ids, options);
  bj::array messages;
  for (const Message& message : transcript.messages) messages.push_back(message_to_json(message));
  (*out)["messages"] = std::move(messages);
  bj::array errors;
  for (const TranscriptError& error : transcript.errors) {
    errors.push_back(bj::object{{"token_index", error.token_idx}, {"error", error.message}});
  }
  (*out)["errors"] = std::move(errors);
  return out;
}

Result<bj::object> schema_record(const Format& format, const bj::value& line, bool strict_library) {
  auto out = begin_record(line);
  if (!out) return out;
  const bj::value* json = find(line.get_object(), "tool");
  if (json == nullptr) return make_error("no 'tool'");
  const auto tool = tool_from_json(*json);
  auto rendering =
      tool ? format.render_tool(*tool, strict_library) : Result<ToolRendering>(tool.error());
  if (!rendering) {
    (*out)["error"] = rendering.error().message;
    return out;
  }
  (*out)["declaration"] = rendering->declaration;
  (*out)["tokens"] = to_array(rendering->tokens);
  return out;
}

}  // namespace briar
