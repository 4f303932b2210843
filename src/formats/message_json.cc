#include "formats/message_json.h"

#include <boost/json.hpp>
#include <string>
#include <utility>

namespace briar {
namespace {

namespace bj = boost::json;

using OptionalText = std::optional<std::string>;

const bj::value* find(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

std::string to_string(const bj::string& text) { return std::string(text.data(), text.size()); }

Result<OptionalText> optional_text(const bj::object& object, std::string_view key) {
  const bj::value* value = find(object, key);
  if (value == nullptr) return OptionalText();
  if (!value->is_string()) return make_error("'{}' is not a string", key);
  return OptionalText(to_string(value->get_string()));
}

Result<std::string> required_text(const bj::object& object, std::string_view key) {
  auto text = optional_text(object, key);
  if (!text) return text.error();
  if (!text->has_value()) return make_error("missing field `{}`", key);
  return std::move(**text);
}

// Reads several optional text fields; the first one of a wrong type is the error.
Status read_texts(const bj::object& object,
                  std::initializer_list<std::pair<std::string_view, OptionalText*>> fields) {
  for (const auto& [key, target] : fields) {
    auto text = optional_text(object, key);
    if (!text) return text.error();
    *target = std::move(*text);
  }
  return Ok{};
}

Result<ToolNamespace> namespace_from_json(const bj::value& json) {
  if (!json.is_object()) return make_error("a tool namespace is not an object");
  const bj::object& object = json.get_object();
  ToolNamespace result;
  auto name = required_text(object, "name");
  if (!name) return name.error();
  result.name = std::move(*name);
  if (auto read = read_texts(object, {{"description", &result.description}}); !read) {
    return read.error();
  }
  const bj::value* tools = find(object, "tools");
  if (tools == nullptr) return result;
  if (!tools->is_array())
    return make_error("the tools of namespace '{}' are not a list", result.name);
  for (const bj::value& item : tools->get_array()) {
    auto tool = tool_from_json(item);
    if (!tool) return tool.error();
    result.tools.push_back(std::move(*tool));
  }
  return result;
}

Result<ToolMap> tool_map_from_json(const bj::object& object) {
  ToolMap map;
  const bj::value* tools = find(object, "tools");
  if (tools == nullptr) return map;
  if (!tools->is_object()) return make_error("'tools' is not a map of namespaces");
  for (const auto& [key, value] : tools->get_object()) {
    auto entry = namespace_from_json(value);
    if (!entry) return entry.error();
    map.insert_or_assign(std::string(key), std::move(*entry));
  }
  return map;
}

Result<std::optional<ReasoningEffort>> effort_from_json(const bj::object& object) {
  auto text = optional_text(object, "reasoning_effort");
  if (!text) return text.error();
  if (!text->has_value()) return std::optional<ReasoningEffort>();
  if (**text == "Low") return std::optional(ReasoningEffort::kLow);
  if (**text == "Medium") return std::optional(ReasoningEffort::kMedium);
  if (**text == "High") return std::optional(ReasoningEffort::kHigh);
  return make_error("unknown variant `{}`, expected one of `Low`, `Medium`, `High`", **text);
}

Result<std::optional<ChannelConfig>> channels_from_json(const bj::object& object) {
  const bj::value* json = find(object, "channel_config");
  if (json == nullptr) return std::optional<ChannelConfig>();
  if (!json->is_object()) return make_error("'channel_config' is not an object");
  ChannelConfig config;
  if (const bj::value* channels = find(json->get_object(), "valid_channels")) {
    if (!channels->is_array()) return make_error("'valid_channels' is not a list");
    for (const bj::value& channel : channels->get_array()) {
      if (!channel.is_string()) return make_error("a valid channel is not a string");
      config.valid_channels.push_back(to_string(channel.get_string()));
    }
  }
  if (const bj::value* required = find(json->get_object(), "channel_required")) {
    if (!required->is_bool()) return make_error("'channel_required' is not true or false");
    config.channel_required = required->get_bool();
  }
  return std::optional(std::move(config));
}

Result<ContentPart> system_from_json(const bj::object& object) {
  SystemContent content;
  auto read = read_texts(object, {{"model_identity", &content.model_identity},
                                  {"conversation_start_date", &content.conversation_start_date},
                                  {"knowledge_cutoff", &content.knowledge_cutoff}});
  if (!read) return read.error();
  auto effort = effort_from_json(object);
  if (!effort) return effort.error();
  content.reasoning_effort = *effort;
  auto tools = tool_map_from_json(object);
  if (!tools) return tools.error();
  content.tools = std::move(*tools);
  auto channels = channels_from_json(object);
  if (!channels) return channels.error();
  content.channel_config = std::move(*channels);
  return ContentPart(std::move(content));
}

Result<ContentPart> developer_from_json(const bj::object& object) {
  DeveloperContent content;
  if (auto read = read_texts(object, {{"instructions", &content.instructions}}); !read) {
    return read.error();
  }
  auto tools = tool_map_from_json(object);
  if (!tools) return tools.error();
  content.tools = std::move(*tools);
  return ContentPart(std::move(content));
}

Result<ContentPart> part_from_json(const bj::value& json) {
  if (!json.is_object()) return make_error("a content part is not an object");
  const bj::object& object = json.get_object();
  auto type = required_text(object, "type");
  if (!type) return type.error();
  if (*type == "system_content") return system_from_json(object);
  if (*type == "developer_content") return developer_from_json(object);
  if (*type != "text") {
    return make_error(
        "unknown variant `{}`, expected one of `text`, `system_content`, `developer_content`",
        *type);
  }
  auto text = required_text(object, "text");
  if (!text) return text.error();
  return ContentPart(TextContent{std::move(*text)});
}

Status read_content(const bj::object& object, Message& message) {
  const bj::value* content = find(object, "content");
  if (content == nullptr) return make_error("missing field `content`");
  if (content->is_string()) {
    message.content.push_back(TextContent{to_string(content->get_string())});
    return Ok{};
  }
  if (!content->is_array()) return make_error("'content' is neither a string nor a list");
  for (const bj::value& item : content->get_array()) {
    auto part = part_from_json(item);
    if (!part) return part.error();
    message.content.push_back(std::move(*part));
  }
  return Ok{};
}

void put(bj::object& object, std::string_view key, const OptionalText& text) {
  if (text) object[key] = *text;
}

bj::object tool_to_json(const ToolDefinition& tool) {
  bj::object object;
  object["name"] = tool.name;
  object["description"] = tool.description;
  if (tool.parameters != nullptr) object["parameters"] = *tool.parameters;
  return object;
}

void put_tools(bj::object& object, const ToolMap& map) {
  if (map.empty()) return;
  bj::object tools;
  for (const auto& [key, entry] : map) {
    bj::object item;
    item["name"] = entry.name;
    put(item, "description", entry.description);
    bj::array list;
    for (const ToolDefinition& tool : entry.tools) list.push_back(tool_to_json(tool));
    item["tools"] = std::move(list);
    tools[key] = std::move(item);
  }
  object["tools"] = std::move(tools);
}

bj::object part_to_json(const TextContent& content) {
  return {{"type", "text"}, {"text", content.text}};
}

bj::object part_to_json(const SystemContent& content) {
  bj::object object{{"type", "system_content"}};
  put(object, "model_identity", content.model_identity);
  if (content.reasoning_effort) {
    constexpr const char* kNames[] = {"Low", "Medium", "High"};
    object["reasoning_effort"] = kNames[static_cast<int>(*content.reasoning_effort)];
  }
  put_tools(object, content.tools);
  put(object, "conversation_start_date", content.conversation_start_date);
  put(object, "knowledge_cutoff", content.knowledge_cutoff);
  if (content.channel_config) {
    bj::array channels;
    for (const std::string& name : content.channel_config->valid_channels) {
      channels.push_back(bj::string(name));
    }
    object["channel_config"] =
        bj::object{{"valid_channels", channels},
                   {"channel_required", content.channel_config->channel_required}};
  }
  return object;
}

bj::object part_to_json(const DeveloperContent& content) {
  bj::object object{{"type", "developer_content"}};
  put(object, "instructions", content.instructions);
  put_tools(object, content.tools);
  return object;
}

}  // namespace

Result<ToolDefinition> tool_from_json(const bj::value& json) {
  if (!json.is_object()) return make_error("a tool is not an object");
  const bj::object& object = json.get_object();
  ToolDefinition tool;
  auto name = required_text(object, "name");
  if (!name) return name.error();
  tool.name = std::move(*name);
  auto description = required_text(object, "description");
  if (!description) return description.error();
  tool.description = std::move(*description);
  if (const bj::value* parameters = find(object, "parameters")) {
    tool.parameters = std::make_shared<const bj::value>(*parameters);
  }
  return tool;
}

Result<Message> message_from_json(const bj::value& json) {
  if (!json.is_object()) return make_error("a message is not an object");
  const bj::object& object = json.get_object();
  auto word = required_text(object, "role");
  if (!word) return word.error();
  const std::optional<Role> role = role_from_word(*word);
  if (!role) {
    return make_error(
        "unknown variant `{}`, expected one of `user`, `assistant`, `system`, `developer`, `tool`",
        *word);
  }
  Message message;
  message.role = *role;
  auto read = read_texts(object, {{"name", &message.name},
                                  {"recipient", &message.recipient},
                                  {"channel", &message.channel},
                                  {"content_type", &message.content_type}});
  if (!read) return read.error();
  if (auto content = read_content(object, message); !content) return content.error();
  return message;
}

Result<std::vector<Message>> conversation_from_json(const bj::value& json) {
  const bj::value* list = json.is_object() ? find(json.get_object(), "messages") : nullptr;
  if (list == nullptr || !list->is_array()) {
    return make_error("a conversation has no list 'messages'");
  }
  std::vector<Message> messages;
  for (const bj::value& item : list->get_array()) {
    auto message = message_from_json(item);
    if (!message) return message.error();
    messages.push_back(std::move(*message));
  }
  return messages;
}

bj::value message_to_json(const Message& message) {
  bj::object object;
  object["role"] = role_word(message.role);
  put(object, "name", message.name);
  put(object, "recipient", message.recipient);
  const bool is_one_text =
      message.content.size() == 1 && std::holds_alternative<TextContent>(message.content[0]);
  if (is_one_text) {
    object["content"] = std::get<TextContent>(message.content[0]).text;
  } else {
    bj::array parts;
    for (const ContentPart& part : message.content) {
      parts.push_back(std::visit([](const auto& content) { return part_to_json(content); }, part));
    }
    object["content"] = std::move(parts);
  }
  put(object, "channel", message.channel);
  put(object, "content_type", message.content_type);
  return object;
}

}  // namespace briar
