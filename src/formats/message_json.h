// Messages as JSON, in the shape that Harmony's libraries read and write.
#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "formats/message.h"

namespace briar {

// {role, name?, recipient?, content, channel?, content_type?}; `content` is a string or a list of
// {type: "text" | "system_content" | "developer_content", ...}. Unknown fields are ignored.
Result<Message> message_from_json(const boost::json::value& json);

// {"messages": [...]}.
Result<std::vector<Message>> conversation_from_json(const boost::json::value& json);

// {name, description, parameters?}.
Result<ToolDefinition> tool_from_json(const boost::json::value& json);

// The reverse; a content of exactly one text becomes a plain string.
boost::json::value message_to_json(const Message& message);

}  // namespace briar
