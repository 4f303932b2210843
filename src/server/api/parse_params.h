// The parts of a body that several endpoints share.
#pragma once

#include <string>
#include <vector>

#include "server/api/fields.h"
#include "server/api/parse.h"

namespace briar {

// Sampling, stops, lengths, streaming, priority, deadline: every field whose meaning is the same on
// all endpoints. Faults are in the log of `body`.
void read_params(Fields& body, const ParseContext& context, GenerationParams& params);

// response_format, and the constraints of other servers: structured_outputs, guided_*, regex, ebnf,
// grammar. At most one of them.
void read_shape(Fields& body, const ParseContext& context, AnswerShape& shape,
                std::vector<ResponseFormat>& told);

// One response format: {"type": "json_schema", ...}. `is_flat`: the Responses API's form, in which
// name and schema stand beside the type.
void read_response_format(Fields& format, bool is_flat, const ParseContext& context,
                          AnswerShape& shape, std::vector<ResponseFormat>& told);

// "tools" and "tool_choice". `is_flat`: the Responses API's form, without the inner "function".
struct ToolSettings {
  std::vector<ToolDefinition> tools;
  ToolSelection choice;
  std::vector<bool> strict;  // of each tool
};
ToolSettings read_tools(Fields& body, bool is_flat, const ParseContext& context);

// "content" of a message: a string, or a list of text parts. `part_types` are the allowed types of
// parts; null content is an empty text.
std::string read_content(Fields& message, const ParseContext& context);

void read_reasoning_effort(Fields& fields, std::string_view key, ReasoningEffort& effort);

}  // namespace briar
