#include "grammar/answer_source.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/check.h"
#include "base/json.h"
#include "grammar/schema_check.h"

namespace briar {
namespace {

constexpr size_t kMaxSourceBytes = size_t{64} << 10;  // of rules, a tag, all choices
constexpr size_t kMaxRegexBytes = size_t{8} << 10;
constexpr int kMaxNesting = 100;  // of brackets in one
constexpr int kMaxJsonDepth = 100;
constexpr size_t kMaxChoices = 1000;

// Recursive readers see no more than this. Brackets that are escaped or quoted count too: that
// errs on the safe side.
Status check_size(std::string_view text, const std::string& path,
                  size_t max_bytes = kMaxSourceBytes) {
  if (text.empty()) return make_error("{}: is empty", path);
  if (text.size() > max_bytes) {
    return make_error("{}: {} bytes, at most {} are allowed", path, text.size(), max_bytes);
  }
  if (text.find('\0') != text.npos) return make_error("{}: holds a zero byte", path);
  int depth = 0;
  int max_depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') max_depth = std::max(max_depth, ++depth);
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
  }
  if (max_depth <= kMaxNesting) return Ok{};
  return make_error("{}: brackets lie {} deep in each other, at most {} are allowed", path,
                    max_depth, kMaxNesting);
}

Result<CheckedSource> check_schema_value(const boost::json::value& schema,
                                         const std::string& path) {
  auto checked = check_schema(schema, path);
  if (!checked) return checked.error();
  for (const auto& [where, pattern] : checked->patterns) {
    if (pattern.empty()) continue;  // matches everything
    if (auto status = check_size(pattern, where, kMaxRegexBytes); !status) return status.error();
  }
  return CheckedSource{.source = {TextSource::Kind::kJsonSchema, std::move(checked->text)},
                       .patterns = std::move(checked->patterns)};
}

Result<CheckedSource> check_schema_text(const std::string& text, const std::string& path) {
  auto schema =
      json::parse(text, path, {.max_bytes = SchemaLimits{}.max_bytes, .max_depth = kMaxJsonDepth});
  if (!schema) return schema.error();
  return check_schema_value(*schema, path);
}

Result<CheckedSource> check_tag(const std::string& text, const std::string& path) {
  if (auto status = check_size(text, path); !status) return status.error();
  auto tag = json::parse(text, path, {.max_bytes = kMaxSourceBytes, .max_depth = kMaxJsonDepth});
  if (!tag) return tag.error();
  return CheckedSource{.source = {TextSource::Kind::kStructuralTag, text}};
}

// As a literal of XGrammar's rules.
std::string quoted_choice(std::string_view choice) {
  std::string out = "\"";
  for (const char c : choice) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Result<CheckedSource> check_choices(const std::vector<std::string>& choices,
                                    const std::string& path) {
  if (choices.empty()) return make_error("{}: there is no choice", path);
  if (choices.size() > kMaxChoices) {
    return make_error("{}: {} choices, at most {} are allowed", path, choices.size(), kMaxChoices);
  }
  std::string rules = "root ::= ";
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].empty()) return make_error("{}[{}]: is empty", path, i);
    rules += (i > 0 ? " | " : "") + quoted_choice(choices[i]);
  }
  if (rules.size() > kMaxSourceBytes) {
    return make_error("{}: the choices are longer than {} bytes together", path, kMaxSourceBytes);
  }
  return CheckedSource{.source = {TextSource::Kind::kEbnf, std::move(rules)}};
}

Result<CheckedSource> check_text(TextSource::Kind kind, const std::string& text,
                                 const std::string& path) {
  const size_t max_bytes = kind == TextSource::Kind::kRegex ? kMaxRegexBytes : kMaxSourceBytes;
  if (auto status = check_size(text, path, max_bytes); !status) return status.error();
  return CheckedSource{.source = {kind, text}};
}

}  // namespace

Result<CheckedSource> check_answer(const AnswerGrammar& answer, const std::string& path) {
  switch (answer.kind) {
    case AnswerGrammar::Kind::kText: break;
    case AnswerGrammar::Kind::kJsonObject: return any_json_object();
    case AnswerGrammar::Kind::kJsonSchema: return check_schema_text(answer.source, path);
    case AnswerGrammar::Kind::kRegex:
      return check_text(TextSource::Kind::kRegex, answer.source, path);
    case AnswerGrammar::Kind::kEbnf:
      return check_text(TextSource::Kind::kEbnf, answer.source, path);
    case AnswerGrammar::Kind::kChoice: return check_choices(answer.choices, path);
    case AnswerGrammar::Kind::kStructuralTag: return check_tag(answer.source, path);
  }
  CHECK(false, "no grammar is needed for kind {}", static_cast<int>(answer.kind));
}

CheckedSource any_json_object() {
  return {.source = {TextSource::Kind::kJsonSchema, R"({"type":"object"})"}};
}

Result<CheckedSource> check_parameters(const GrammarTool& tool, const std::string& path) {
  if (!tool.parameters || tool.parameters->is_null()) {
    return CheckedSource{.source = {TextSource::Kind::kJsonSchema,
                                    R"({"type":"object","additionalProperties":false})"}};
  }
  return check_schema_value(*tool.parameters, path);
}

}  // namespace briar
