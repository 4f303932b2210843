// Tools and the shape of the answer.
#include <algorithm>
#include <boost/json.hpp>

#include "formats/json_text.h"
#include "server/api/check_schema.h"
#include "server/api/parse_params.h"

namespace briar {
namespace {

namespace bj = boost::json;

// Letters, digits, '_', '-' and '.', as OpenAI's API has it, and dots.
bool is_tool_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), is_allowed);
}

// Reports the schema's own place.
void check_schema(Fields& fields, std::string_view key, const bj::value& schema) {
  const Status status = check_json_schema(schema, fields.path_of(key));
  if (!status) fields.fail(key, "{}", status.error().message);
}

std::string schema_text(Fields& fields, std::string_view key, const ParseContext& context) {
  const bj::value* schema = fields.find(key);
  if (schema == nullptr) return {};
  check_schema(fields, key, *schema);
  std::string text = compact_json(*schema);
  if (text.size() > context.limits.max_schema_bytes) {
    fields.fail(key, "'{}' has {} bytes; at most {} are allowed", fields.path_of(key), text.size(),
                context.limits.max_schema_bytes);
  }
  return text;
}

void read_tool(Fields& function, const ParseContext& context, ToolSettings& out) {
  ToolDefinition tool;
  const auto name = function.text("name", 4096);
  if (!name || !is_tool_name(*name)) {
    function.fail("name",
                  "'{}' must be 1 to 64 characters out of letters, digits, '_', '-' and '.'",
                  function.path_of("name"));
    return;
  }
  tool.name = *name;
  tool.description = function.text("description").value_or("");
  if (const bj::value* parameters = function.find("parameters")) {
    schema_text(function, "parameters", context);
    tool.parameters = std::make_shared<const bj::value>(*parameters);
  }
  const bool is_known = std::any_of(out.tools.begin(), out.tools.end(),
                                    [&](const auto& other) { return other.name == tool.name; });
  if (is_known) function.fail("name", "'{}' names a second tool so", function.path_of("name"));
  out.tools.push_back(std::move(tool));
  out.strict.push_back(function.boolean("strict").value_or(false));
}

void read_tool_list(Fields& body, bool is_flat, const ParseContext& context, ToolSettings& out) {
  const bj::array* list = body.list("tools", context.limits.max_tools);
  if (list == nullptr) return;
  for (size_t i = 0; i < list->size() && body.ok(); ++i) {
    auto tool = body.element("tools", i, (*list)[i]);
    if (!tool) return;
    const std::string type = tool->text("type", 64).value_or("function");
    if (type != "function") {
      tool->fail("type", "'{}' is not \"function\", the only kind of tool here",
                 tool->path_of("type"));
      return;
    }
    if (is_flat) {
      read_tool(*tool, context, out);
    } else if (auto function = tool->object("function")) {
      read_tool(*function, context, out);
    } else {
      tool->fail("function", "'{}' is missing", tool->path_of("function"));
    }
  }
}

void read_choice_object(Fields& body, bool is_flat, ToolSettings& out) {
  auto choice = body.object("tool_choice");
  if (!choice) return;
  if (choice->text("type", 64).value_or("") != "function") {
    choice->fail("type", "'{}' is not \"function\"", choice->path_of("type"));
    return;
  }
  auto function = is_flat ? choice : choice->object("function");
  const auto name = function ? function->text("name", 4096) : std::nullopt;
  if (!name) {
    choice->fail("", "'{}' names no function", choice->path_of(""));
    return;
  }
  out.choice = {.kind = ToolSelection::Kind::kNamed, .name = *name};
  const bool is_known = std::any_of(out.tools.begin(), out.tools.end(),
                                    [&](const auto& tool) { return tool.name == *name; });
  if (!is_known) body.fail("tool_choice", "'tool_choice' names a function that 'tools' lacks");
}

void read_choice(Fields& body, bool is_flat, ToolSettings& out) {
  const bj::value* value = body.find("tool_choice");
  if (value == nullptr) return;
  if (value->is_object()) return read_choice_object(body, is_flat, out);
  const std::string word = body.text("tool_choice", 64).value_or("");
  if (word == "auto") return;
  if (word == "none") {
    out.choice.kind = ToolSelection::Kind::kNone;
  } else if (word == "required" || word == "any") {
    out.choice.kind = ToolSelection::Kind::kRequired;
    if (out.tools.empty()) {
      body.fail("tool_choice", "'tool_choice' requires a call, and there are no 'tools'");
    }
  } else {
    body.fail("tool_choice", "'tool_choice' is not one of none, auto, required, or a function");
  }
}

void set_shape(Fields& fields, std::string_view key, AnswerShape& shape, AnswerShape::Kind kind,
               std::string text) {
  if (shape.kind != AnswerShape::Kind::kFree) {
    fields.fail(key, "'{}' is a second constraint of the answer; only one is possible",
                fields.path_of(key));
  }
  shape = {.kind = kind, .text = std::move(text), .choices = {}};
}

void read_text_shape(Fields& fields, std::string_view key, AnswerShape::Kind kind,
                     const ParseContext& context, AnswerShape& shape) {
  if (auto text = fields.text(key, context.limits.max_schema_bytes)) {
    set_shape(fields, key, shape, kind, std::move(*text));
  }
}

// A JSON schema, as an object or as text that holds one.
void read_json_shape(Fields& fields, std::string_view key, const ParseContext& context,
                     AnswerShape& shape, std::vector<ResponseFormat>& told) {
  const bj::value* schema = fields.find(key);
  if (schema == nullptr) return;
  std::string text;
  if (schema->is_string()) {
    auto parsed = parse_body(std::string_view(schema->get_string()), context.limits.json_depth);
    if (!parsed) {
      fields.fail(key, "'{}' holds no JSON object", fields.path_of(key));
      return;
    }
    check_schema(fields, key, *parsed);
    text = compact_json(*parsed);
  } else {
    text = schema_text(fields, key, context);
  }
  told.push_back({.name = "answer", .description = {}, .schema_json = text});
  set_shape(fields, key, shape, AnswerShape::Kind::kJsonSchema, std::move(text));
}

void read_choices(Fields& fields, std::string_view key, const ParseContext& context,
                  AnswerShape& shape) {
  auto choices = fields.texts(key, context.limits.max_guided_choices, 4096);
  if (!choices) return;
  if (choices->empty()) fields.fail(key, "'{}' is empty", fields.path_of(key));
  set_shape(fields, key, shape, AnswerShape::Kind::kChoice, {});
  shape.choices = std::move(*choices);
}

void read_structural_tag(Fields& fields, std::string_view key, const ParseContext& context,
                         AnswerShape& shape) {
  const bj::value* tag = fields.find(key);
  if (tag == nullptr) return;
  if (tag->is_string()) {
    return read_text_shape(fields, key, AnswerShape::Kind::kStructuralTag, context, shape);
  }
  set_shape(fields, key, shape, AnswerShape::Kind::kStructuralTag, compact_json(*tag));
}

// The names that vLLM has for the same things, now and before.
struct ForeignKeys {
  std::string_view json, regex, choice, grammar;
};
constexpr ForeignKeys kStructuredOutputs = {"json", "regex", "choice", "grammar"};
constexpr ForeignKeys kGuided = {"guided_json", "guided_regex", "guided_choice", "guided_grammar"};

void read_foreign_shapes(Fields& fields, const ForeignKeys& keys, const ParseContext& context,
                         AnswerShape& shape, std::vector<ResponseFormat>& told) {
  read_json_shape(fields, keys.json, context, shape, told);
  read_text_shape(fields, keys.regex, AnswerShape::Kind::kRegex, context, shape);
  read_choices(fields, keys.choice, context, shape);
  read_text_shape(fields, keys.grammar, AnswerShape::Kind::kEbnf, context, shape);
}

}  // namespace

ToolSettings read_tools(Fields& body, bool is_flat, const ParseContext& context) {
  ToolSettings out;
  read_tool_list(body, is_flat, context, out);
  read_choice(body, is_flat, out);
  return out;
}

void read_response_format(Fields& format, bool is_flat, const ParseContext& context,
                          AnswerShape& shape, std::vector<ResponseFormat>& told) {
  using Kind = AnswerShape::Kind;
  const std::string type = format.text("type", 64).value_or("");
  if (type == "text") return;
  if (type == "json_object") {
    told.push_back(
        {.name = "json_object", .description = {}, .schema_json = R"({"type":"object"})"});
    return set_shape(format, "type", shape, Kind::kJsonObject, {});
  }
  if (type == "regex") return read_text_shape(format, "pattern", Kind::kRegex, context, shape);
  if (type == "ebnf") return read_text_shape(format, "ebnf", Kind::kEbnf, context, shape);
  if (type == "structural_tag") {
    return set_shape(format, "type", shape, Kind::kStructuralTag, compact_json(format.json()));
  }
  if (type != "json_schema") {
    return format.fail("type",
                       "'{}' is not one of text, json_object, json_schema, regex, ebnf, "
                       "structural_tag",
                       format.path_of("type"));
  }
  auto inner = is_flat ? std::optional(format) : format.object("json_schema");
  if (!inner) {
    return format.fail("json_schema", "'{}' is missing", format.path_of("json_schema"));
  }
  ResponseFormat answer;
  answer.name = inner->text("name", 256).value_or("answer");
  answer.description = inner->text("description").value_or("");
  answer.schema_json = schema_text(*inner, "schema", context);
  if (answer.schema_json.empty()) answer.schema_json = R"({"type":"object"})";
  set_shape(*inner, "schema", shape, Kind::kJsonSchema, answer.schema_json);
  told.push_back(std::move(answer));
}

void read_shape(Fields& body, const ParseContext& context, AnswerShape& shape,
                std::vector<ResponseFormat>& told) {
  using Kind = AnswerShape::Kind;
  if (auto format = body.object("response_format")) {
    read_response_format(*format, false, context, shape, told);
  }
  if (auto outputs = body.object("structured_outputs")) {
    read_foreign_shapes(*outputs, kStructuredOutputs, context, shape, told);
    read_structural_tag(*outputs, "structural_tag", context, shape);
    outputs->note_unread();
  }
  read_foreign_shapes(body, kGuided, context, shape, told);
  read_text_shape(body, "regex", Kind::kRegex, context, shape);
  read_text_shape(body, "ebnf", Kind::kEbnf, context, shape);
  read_text_shape(body, "grammar", Kind::kEbnf, context, shape);
  read_json_shape(body, "json_schema", context, shape, told);
  read_structural_tag(body, "structural_tag", context, shape);
}

}  // namespace briar
