// Tools as Harmony shows them to the model: JSON schemas as TypeScript types.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/message.h"

namespace briar {

// A JSON schema as a TypeScript type. `strict_library` reproduces OpenAI's library; without it
// $ref, anyOf, allOf, const, null and enums of any type are rendered too, and every comment line is
// one.
std::string schema_to_typescript(const boost::json::value& schema, bool strict_library);

// The comment lines and the `type` line of one tool, without a newline at the end.
std::string harmony_tool_declaration(const ToolDefinition& tool, bool strict_library);

// "# Tools" and every namespace.
std::string harmony_tools_section(const ToolMap& tools, bool strict_library);

// Lines end at LF; one CR before it is dropped; there is no empty last line.
std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace briar
