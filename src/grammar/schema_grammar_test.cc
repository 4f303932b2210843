// Schemas: which keywords are enforced, what is refused and with which words.
#include <boost/json.hpp>
#include <thread>

#include "base/json.h"
#include "grammar/test_schema_validator.h"
#include "grammar/test_walk.h"
#include "grammar/xgrammar_budget.h"

namespace briar {
namespace {

using grammar_test::compiler;
using grammar_test::special;
using grammar_test::tokenizer;
namespace bj = boost::json;

constexpr std::string_view kFinal = "<|channel|>final<|message|>";

AnswerGrammar json_schema(std::string_view text) {
  return {.kind = AnswerGrammar::Kind::kJsonSchema, .source = std::string(text)};
}

// Whether a whole answer is allowed.
bool allows(const AnswerGrammar& answer, std::string_view text) {
  auto constraint = compiler().compile({.answer = answer});
  EXPECT_TRUE(constraint.ok()) << constraint.error().message;
  if (!constraint.ok()) return false;
  auto ids = tokenizer()->encode_with_specials(kFinal);
  tokenizer()->encode(text, ids);
  ids.push_back(special("<|return|>"));
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 31) / 32);
  for (const int32_t id : ids) {
    (*constraint)->fill_mask(mask);
    if (!has_bit(mask, id)) return false;
    (*constraint)->accept(id);
  }
  return (*constraint)->is_finished();
}

struct KeywordCase {
  std::string name;
  std::string schema;
  std::vector<std::string> valid;
  std::vector<std::string> invalid;     // and not allowed
  std::vector<std::string> leaks = {};  // invalid, and allowed all the same: not enforced
};

class Keyword : public testing::TestWithParam<KeywordCase> {};

// docs/structured_output.md is this list in words.
TEST_P(Keyword, IsEnforcedAsDocumented) {
  const KeywordCase& c = GetParam();
  for (const auto& text : c.valid) EXPECT_TRUE(allows(json_schema(c.schema), text)) << text;
  for (const auto& text : c.invalid) EXPECT_FALSE(allows(json_schema(c.schema), text)) << text;
  for (const auto& text : c.leaks) EXPECT_TRUE(allows(json_schema(c.schema), text)) << text;
}

INSTANTIATE_TEST_SUITE_P(
    All, Keyword,
    testing::Values(
        KeywordCase{"type_string", R"({"type":"string"})", {R"("a\nb")", R"("")"}, {"1", "null"}},
        KeywordCase{"type_integer", R"({"type":"integer"})", {"0", "-12"}, {"1.5", "\"1\"", "01"}},
        KeywordCase{"type_number", R"({"type":"number"})", {"0.5", "-1e5", "3"}, {".5", "NaN"}},
        KeywordCase{"type_boolean", R"({"type":"boolean"})", {"true"}, {"True", "0"}},
        KeywordCase{"type_null", R"({"type":"null"})", {"null"}, {"None"}},
        KeywordCase{"type_list", R"({"type":["integer","null"]})", {"4", "null"}, {"\"4\""}},
        KeywordCase{"type_empty_list", R"({"type":[]})", {"4", "[null]"}, {"nul"}},
        KeywordCase{"enum_", R"({"enum":["a",1,null]})", {"\"a\"", "1", "null"}, {"\"b\"", "2"}},
        KeywordCase{"const_",
                    R"({"const":{"a":[1]}})",
                    {R"({"a":[1]})"},
                    {R"({"a":[2]})", R"({"a": [1]})"}},
        KeywordCase{"properties",
                    R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},
                        "required":["a"]})",
                    {R"({"a":1})", R"({"a":1,"b":"x"})", "{\n  \"a\": 1\n}"},
                    {R"({"b":"x"})", R"({"a":"x"})", "{}"}},
        // Stricter than the schema: the members come in the schema's order, and no others.
        KeywordCase{
            "order_and_others",
            R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}})",
            {"{}"},
            {R"({"b":"x","a":1})", R"({"a":1,"c":2})"}},
        KeywordCase{"additional_properties_true",
                    R"({"type":"object","properties":{"a":{}},"additionalProperties":true})",
                    {R"({"a":1,"c":2})"},
                    {"[]"}},
        KeywordCase{"additional_properties_schema",
                    R"({"type":"object","additionalProperties":{"type":"integer"}})",
                    {R"({"x":1,"y":2})", "{}"},
                    {R"({"x":"a"})"}},
        KeywordCase{
            "free_object", R"({"type":"object"})", {R"({"x":[1,{"y":null}]})", "{}"}, {"1"}},
        KeywordCase{"pattern_properties",
                    R"({"type":"object","patternProperties":{"^n_[a-z]+$":{"type":"integer"}}})",
                    {R"({"n_a":1})"},
                    {R"({"n_a":"x"})", R"({"m":1})"}},
        KeywordCase{"property_names",
                    R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$"}})",
                    {R"({"ab":1})"},
                    {R"({"A":1})"}},
        KeywordCase{"min_max_properties",
                    R"({"type":"object","additionalProperties":{"type":"integer"},
                        "minProperties":1,"maxProperties":2})",
                    {R"({"a":1})", R"({"a":1,"b":2})"},
                    {"{}", R"({"a":1,"b":2,"c":3})"}},
        KeywordCase{"items",
                    R"({"type":"array","items":{"type":"integer"}})",
                    {"[]", "[1, 2]"},
                    {"[\"a\"]"}},
        KeywordCase{"min_max_items",
                    R"({"type":"array","items":{},"minItems":1,"maxItems":2})",
                    {"[1]", "[1,2]"},
                    {"[]", "[1,2,3]"}},
        KeywordCase{"prefix_items",
                    R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],
                        "items":false})",
                    {R"([1,"a"])"},
                    {R"(["a",1])", R"([1,"a",2])"}},
        KeywordCase{"min_max_length",
                    R"({"type":"string","minLength":2,"maxLength":3})",
                    {"\"ab\"", "\"äöü\""},
                    {"\"a\"", "\"abcd\""}},
        KeywordCase{"pattern",
                    R"({"type":"string","pattern":"^[a-c]{2}$"})",
                    {"\"ab\""},
                    {"\"ad\"", "\"abc\""}},
        // Stricter: without ^ and $ a pattern would be satisfied by a part of the text.
        KeywordCase{
            "pattern_is_anchored", R"({"type":"string","pattern":"b"})", {"\"b\""}, {"\"abc\""}},
        KeywordCase{"integer_bounds",
                    R"({"type":"integer","minimum":-3,"maximum":12})",
                    {"-3", "0", "12"},
                    {"-4", "13", "100"}},
        KeywordCase{"integer_exclusive",
                    R"({"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":5})",
                    {"1", "4"},
                    {"0", "5"}},
        KeywordCase{"number_bounds",
                    R"({"type":"number","minimum":-1.5,"maximum":2})",
                    {"-1.5", "0.25", "2"},
                    {"-1.6", "2.1"}},
        KeywordCase{"integer_multiple", R"({"type":"integer","multipleOf":5})", {"10", "0"}, {"7"}},
        KeywordCase{
            "number_multiple", R"({"type":"number","multipleOf":0.5})", {"1.5"}, {}, {"0.3"}},
        KeywordCase{"format_date",
                    R"({"type":"string","format":"date"})",
                    {"\"2025-06-28\""},
                    {"\"June\""}},
        KeywordCase{"format_date_time",
                    R"({"type":"string","format":"date-time"})",
                    {"\"2025-06-28T10:00:00Z\""},
                    {"\"2025\""}},
        KeywordCase{
            "format_time", R"({"type":"string","format":"time"})", {"\"10:00:00Z\""}, {"\"ten\""}},
        KeywordCase{"format_uuid",
                    R"({"type":"string","format":"uuid"})",
                    {"\"123e4567-e89b-12d3-a456-426614174000\""},
                    {"\"123\""}},
        KeywordCase{
            "format_email", R"({"type":"string","format":"email"})", {"\"a@b.org\""}, {"\"a\""}},
        KeywordCase{"format_ipv4",
                    R"({"type":"string","format":"ipv4"})",
                    {"\"127.0.0.1\""},
                    {"\"localhost\""}},
        KeywordCase{"format_ipv6", R"({"type":"string","format":"ipv6"})", {"\"::1\""}, {"\"x\""}},
        KeywordCase{"format_uri",
                    R"({"type":"string","format":"uri"})",
                    {"\"https://a.org/b\""},
                    {"\"not a uri\""}},
        KeywordCase{"format_hostname",
                    R"({"type":"string","format":"hostname"})",
                    {"\"a.org\""},
                    {"\"a b\""}},
        KeywordCase{"format_duration",
                    R"({"type":"string","format":"duration"})",
                    {"\"P3D\""},
                    {"\"three\""}},
        KeywordCase{"format_unknown", R"({"type":"string","format":"colour"})", {"\"red\""}, {"1"}},
        KeywordCase{"any_of",
                    R"({"anyOf":[{"type":"integer"},{"type":"null"}]})",
                    {"1", "null"},
                    {"\"a\""}},
        // As anyOf: a value that fits two of them is allowed.
        KeywordCase{"one_of",
                    R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
                    {"1.5"},
                    {"\"a\""},
                    {"1"}},
        KeywordCase{"all_of_single", R"({"allOf":[{"type":"integer"}]})", {"1"}, {"\"a\""}},
        KeywordCase{
            "all_of", R"({"allOf":[{"type":"integer"},{"minimum":3}]})", {"3"}, {}, {"1", "\"a\""}},
        KeywordCase{"ref",
                    R"({"$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},
                        "next":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}},
                        "required":["v","next"]}},"$ref":"#/$defs/n"})",
                    {R"({"v":1,"next":{"v":2,"next":null}})"},
                    {R"({"v":1,"next":3})"}},
        KeywordCase{"not_", R"({"type":"integer","not":{"const":3}})", {"4"}, {}, {"3"}},
        KeywordCase{"if_then",
                    R"({"type":"integer","if":{"minimum":3},"then":{"maximum":5}})",
                    {"4"},
                    {},
                    {"7"}},
        KeywordCase{"unique_items",
                    R"({"type":"array","items":{"type":"integer"},"uniqueItems":true})",
                    {"[1,2]"},
                    {},
                    {"[1,1]"}},
        KeywordCase{"contains",
                    R"({"type":"array","contains":{"const":1},"items":{"type":"integer"}})",
                    {"[1]"},
                    {},
                    {"[2]"}},
        KeywordCase{
            "dependent_required",
            R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
                        "dependentRequired":{"a":["b"]}})",
            {R"({"a":1,"b":2})"},
            {},
            {R"({"a":1})"}},
        KeywordCase{"definitions",
                    R"({"definitions":{"n":{"type":"integer"}},"items":{"$ref":"#/definitions/n"},
                        "type":"array"})",
                    {"[1]"},
                    {"[\"a\"]"}},
        KeywordCase{"dependent_schemas",
                    R"({"type":"object","properties":{"a":{"type":"integer"}},
                        "dependentSchemas":{"a":{"required":["b"]}}})",
                    {"{}"},
                    {},
                    {R"({"a":1})"}},
        KeywordCase{"unknown_keyword", R"({"type":"integer","colour":"red"})", {"1"}, {"\"a\""}},
        KeywordCase{"one_of_single", R"({"oneOf":[{"type":"integer"}]})", {"1"}, {"\"a\""}},
        KeywordCase{
            "enum_with_type", R"({"type":"string","enum":["a","b"]})", {"\"a\""}, {"\"c\""}},
        KeywordCase{"properties_and_others",
                    R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],
                        "additionalProperties":{"type":"boolean"}})",
                    {R"({"a":1})", R"({"a":1,"c":true})"},
                    {R"({"a":1,"c":2})", R"({"c":true})"}},
        KeywordCase{"properties_and_patterns",
                    R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],
                        "patternProperties":{"^n_[a-z]+$":{"type":"integer"}}})",
                    {R"({"a":1})", R"({"a":1,"n_x":2})"},
                    {R"({"a":1,"n_x":true})"}},
        KeywordCase{
            "any_of_beside_properties",
            R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
                        "anyOf":[{"required":["a"]},{"required":["b"]}]})",
            {R"({"a":1})"},
            {},
            {"{}"}},
        KeywordCase{"ref_beside_others",
                    R"({"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n","minimum":3})",
                    {"3"},
                    {"\"a\""},
                    {"1"}},
        KeywordCase{"prefix_items_alone",
                    R"({"type":"array","prefixItems":[{"type":"integer"}]})",
                    {"[1]"},
                    {"[\"a\"]"}},
        // A pattern or a format takes the place of the lengths, a combination or an enum that of
        // all else.
        KeywordCase{"length_and_pattern",
                    R"({"type":"string","pattern":"^[a-z]+$","maxLength":2})",
                    {"\"ab\""},
                    {"\"A\""},
                    {"\"abc\""}},
        KeywordCase{"enum_beside_others",
                    R"({"type":"integer","enum":[1,2],"minimum":2})",
                    {"2"},
                    {"3"},
                    {"1"}},
        KeywordCase{
            "required_but_not_declared",
            R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a","x"]})",
            {R"({"a":1,"x":[2]})"},
            {R"({"a":1})"}},
        KeywordCase{"required_alone",
                    R"({"type":"object","required":["x"]})",
                    {R"({"x":1})", R"({"x":1,"y":2})"},
                    {"{}"}},
        KeywordCase{
            "required_of_others",
            R"({"type":"object","required":["x"],"additionalProperties":{"type":"integer"}})",
            {R"({"x":1})"},
            {"{}", R"({"x":"a"})"}},
        KeywordCase{
            "white_space_outside", R"({"type":"object"})", {"{}"}, {" {}", "{} ", "```{}"}}),
    [](const auto& info) { return info.param.name; });

TEST(SchemaGrammar, WhiteSpaceIsBounded) {
  const AnswerGrammar any{.kind = AnswerGrammar::Kind::kJsonObject};
  EXPECT_TRUE(allows(any, "{\n" + std::string(40, ' ') + "\"a\": 1}"));
  EXPECT_TRUE(
      allows(any, "{\"" + std::string(4000, ' ') + "\": \"\\\"" + std::string(4000, '\\') + "\"}"));
  std::string text = "{";
  for (int i = 0; i < 100; ++i) text += "\n ";
  EXPECT_FALSE(allows(any, text + "}"));
}

TEST(TextGrammars, OtherKinds) {
  const AnswerGrammar regex{.kind = AnswerGrammar::Kind::kRegex, .source = "[a-z]+@[a-z]+\\.org"};
  EXPECT_TRUE(allows(regex, "me@briar.org"));
  EXPECT_FALSE(allows(regex, "me@briar.com"));
  const AnswerGrammar rules{.kind = AnswerGrammar::Kind::kEbnf,
                            .source = "root ::= sum\nsum ::= [0-9]+ (\" + \" [0-9]+)*"};
  EXPECT_TRUE(allows(rules, "1 + 22 + 3"));
  EXPECT_FALSE(allows(rules, "1 +"));
  const std::vector<std::string> words = {"yes", "no \"way\"", "b\\s\nx", "Öl"};
  const AnswerGrammar choice{.kind = AnswerGrammar::Kind::kChoice, .choices = words};
  for (const auto& word : words) EXPECT_TRUE(allows(choice, word)) << word;
  EXPECT_FALSE(allows(choice, "ye"));
  const AnswerGrammar tag{
      .kind = AnswerGrammar::Kind::kStructuralTag,
      .source = R"({"type":"structural_tag","format":{"type":"tag","begin":"<a>",
          "content":{"type":"json_schema","json_schema":{"type":"integer"}},"end":"</a>"}})"};
  EXPECT_TRUE(allows(tag, "<a>12</a>"));
  EXPECT_FALSE(allows(tag, "<a>x</a>"));
}

TEST(TextGrammars, FreeTextOfATagHasNoSpecialTokens) {
  auto constraint = compiler().compile(
      {.answer = {.kind = AnswerGrammar::Kind::kStructuralTag,
                  .source = R"({"type":"structural_tag","format":{"type":"any_text"}})"}});
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  for (const int32_t id : tokenizer()->encode_with_specials(kFinal)) (*constraint)->accept(id);
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 31) / 32);
  (*constraint)->fill_mask(mask);
  size_t num_ordinary = 0;
  for (const int32_t id : grammar_test::ids_of(mask)) {
    num_ordinary += !tokenizer()->is_special(id);
    EXPECT_TRUE(!tokenizer()->is_special(id) || id == special("<|return|>")) << id;
  }
  EXPECT_GT(num_ordinary, 190000u);
}

Error refusal(const AnswerGrammar& answer) {
  auto constraint = compiler().compile({.answer = answer});
  EXPECT_FALSE(constraint.ok()) << answer.source.substr(0, 200);
  return constraint.ok() ? Error{} : constraint.error();
}

// users.md X11.
TEST(SchemaErrors, X11MalformedSchemasNameTheirPath) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"type":"strnig"})", "response_format.type: \"strnig\" is no type of JSON"},
      {R"({"properties":{"a":{"items":{"type":["string",3]}}}})",
       "response_format.properties.a.items.type[1]: a type is a string or a list of them"},
      {R"({"properties":{"a b":{"minimum":"x"}}})",
       "response_format.properties[\"a b\"].minimum: must be a number"},
      {R"({"anyOf":[{},{"enum":[]}]})",
       "response_format.anyOf[1].enum: an empty list allows no value"},
      {R"({"required":5})", "response_format.required: must be a list of names"},
      {R"({"type":"object","properties":{},"required":["a"],"additionalProperties":false})",
       "response_format.required[0]: \"a\" is not among the properties, and no others are allowed"},
      {R"({"required":["a",5]})", "response_format.required[1]: must be a string"},
      {R"({"anyOf":[]})", "response_format.anyOf: must be a list of at least one schema"},
      {R"({"properties":[]})", "response_format.properties: must be an object of schemas"},
      {R"({"items":3})", "response_format.items: a schema is an object or true or false"},
      {R"({"minItems":1.5})",
       "response_format.minItems: must be a whole number from 0 to 1073741824"},
      {R"({"minLength":4,"maxLength":3})", "response_format: minLength 4 is above maxLength 3"},
      {R"({"minimum":4,"maximum":3.5})", "response_format: minimum 4 is above maximum 3.5"},
      {R"({"$ref":"https://x.org/a"})",
       "response_format.$ref: \"https://x.org/a\" is not of the form #/path within this schema"},
      {R"({"$ref":"#/$defs/a"})", "response_format.$ref: there is no \"#/$defs/a\""},
  };
  for (const auto& [schema, message] : cases) {
    const Error error = refusal(json_schema(schema));
    EXPECT_EQ(error.message, message);
    EXPECT_EQ(error.param, "response_format");
    EXPECT_EQ(error.http_status, 400);
  }
  const Error pattern = refusal(
      json_schema(R"({"type":"object","properties":{"p":{"type":"string","pattern":"(["}}})"));
  EXPECT_EQ(pattern.message.find("response_format.properties.p.pattern: "), 0u) << pattern.message;
}

TEST(SchemaErrors, X11OfToolsToo) {
  const std::vector<GrammarTool> tools = {
      {.name = "f",
       .parameters = std::make_shared<const bj::value>(
           bj::parse(R"({"type":"object","properties":{"a":{"type":"strnig"}}})"))}};
  auto constraint = compiler().compile({.tools = tools, .tool_choice = ToolChoice::kRequired});
  ASSERT_FALSE(constraint.ok());
  EXPECT_EQ(constraint.error().message,
            "tools[0].parameters.properties.a.type: \"strnig\" is no type of JSON");
  EXPECT_EQ(constraint.error().param, "tools");
  // Not strict, and the model need not call it: its schema is only read by the model.
  EXPECT_TRUE(compiler().compile({.tools = tools, .tool_choice = ToolChoice::kAuto}).ok());
}

TEST(SchemaErrors, UnreadableSources) {
  using Kind = AnswerGrammar::Kind;
  for (
      const AnswerGrammar& answer : std::vector<AnswerGrammar>{
          json_schema("{"),
          json_schema("[]"),
          json_schema(""),
          json_schema("false"),
          json_schema(R"({"$ref":"#"})"),
          json_schema(
              R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"})"),
          {.kind = Kind::kRegex, .source = "(["},
          {.kind = Kind::kRegex, .source = ""},
          {.kind = Kind::kRegex, .source = std::string(300, '(') + std::string(300, ')')},
          {.kind = Kind::kRegex, .source = std::string(100000, 'a')},
          {.kind = Kind::kEbnf, .source = "root ::= missing"},
          {.kind = Kind::kEbnf, .source = "start ::= \"a\""},
          {.kind = Kind::kEbnf, .source = "root ::= \"a"},
          {.kind = Kind::kChoice},
          {.kind = Kind::kChoice, .choices = {"a", ""}},
          {.kind = Kind::kStructuralTag, .source = "{}"},
          {.kind = Kind::kStructuralTag,
          .source = R"({"type":"structural_tag","format":{"type":"x"}})"}}) {
    const Error error = refusal(answer);
    EXPECT_EQ(error.message.find("response_format"), 0u) << error.message;
    EXPECT_EQ(error.message.find('\n'), error.message.npos);
    EXPECT_EQ(error.http_status, 400);
  }
}

// users.md X01, S23: as large and as deep as they come.
TEST(SchemaErrors, HostileSchemasAreRefusedSoon) {
  std::string deep = "{\"type\":\"string\"}";
  for (int i = 0; i < 45; ++i) deep = "{\"items\":" + deep + "}";
  std::string deeper(3000, '[');
  std::string wide = "{\"properties\":{";
  for (int i = 0; i < 5000; ++i) wide += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + "\":{}";
  wide += "}}";
  std::string many = "{\"enum\":[";
  for (int i = 0; i < 6000; ++i) many += (i > 0 ? "," : "") + std::to_string(i);
  many += "]}";
  // Fifty objects that differ in nothing the next token could tell.
  std::string same = "{\"anyOf\":[";
  for (int i = 0; i < 50; ++i) {
    same += std::string(i > 0 ? "," : "") + "{\"type\":\"object\",\"properties\":{";
    for (int k = 0; k < 20; ++k) {
      same += (k > 0 ? ",\"k" : "\"k") + std::to_string(k) + "\":{\"type\":\"string\"}";
    }
    same += "}}";
  }
  same += "]}";
  const std::string long_text = "{\"const\":\"" + std::string(300 << 10, 'x') + "\"}";
  for (const std::string& text : {deep, deeper, wide, many, same, long_text}) {
    const double begin = thread_seconds();
    const Error error = refusal(json_schema(text));
    EXPECT_LT(thread_seconds() - begin, 1.5) << text.substr(0, 60);
    EXPECT_EQ(error.message.find("response_format"), 0u) << error.message;
    EXPECT_LT(error.message.size(), 400u);
  }
}

// Each keeps XGrammar busy for minutes to years if nobody stops it.
TEST(SchemaErrors, ExplosiveSourcesEndInTime) {
  using Kind = AnswerGrammar::Kind;
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 40; ++i) doubling += fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  doubling += "r40 ::= \"\" | \"a\"\n";
  std::string options;
  for (int i = 0; i < 1000; ++i) options += "(a|b)*c?";
  for (const auto& [kind, source] : std::vector<std::pair<Kind, std::string>>{
           {Kind::kEbnf, doubling},
           {Kind::kEbnf, "root ::= ([a-z]{1,500} [a-z]{1,500}){1,500}"},
           {Kind::kRegex, ".*.*.*.*.*.*x.{200}"},
           {Kind::kRegex, "(.*a.{20}|.*b.{30})+"},
           {Kind::kRegex, options}}) {
    const double begin = thread_seconds();
    const Error error = refusal({.kind = kind, .source = source});
    EXPECT_LT(thread_seconds() - begin, 1.5) << source.substr(0, 60);
    EXPECT_EQ(error.http_status, 400);
  }
  // The compiler is as good as new.
  EXPECT_TRUE(allows(json_schema(R"({"type":"string"})"), "\"a\""));
}

TEST(GrammarCache, KeepsWhatIsUsedAndIsBounded) {
  auto small =
      GrammarCompiler::create(grammar_test::harmony(), tokenizer(), {.max_cache_entries = 3});
  ASSERT_TRUE(small.ok());
  const auto compile = [&](int n) {
    const auto schema =
        fmt::format(R"({{"type":"object","properties":{{"a{}":{{"type":"null"}}}}}})", n);
    return (*small)->compile({.answer = json_schema(schema)}).ok();
  };
  const GrammarCacheStats before = (*small)->cache_stats();
  for (int n : {0, 1, 0, 2, 0, 3, 0}) EXPECT_TRUE(compile(n));
  const GrammarCacheStats after = (*small)->cache_stats();
  EXPECT_EQ(after.num_entries, 3);
  EXPECT_EQ(after.num_hits - before.num_hits, 3u);
  EXPECT_EQ(after.num_compiled - before.num_compiled, 4u);
  EXPECT_GT(after.num_bytes, 0);
}

TEST(GrammarCache, ManyThreadsCompileOneSchemaOnce) {
  auto own = GrammarCompiler::create(grammar_test::harmony(), tokenizer());
  ASSERT_TRUE(own.ok());
  const uint64_t before = (*own)->cache_stats().num_compiled;
  std::vector<std::thread> threads;
  std::atomic<int> num_ok = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 10; ++k) {
        const auto schema =
            fmt::format(R"({{"type":"array","items":{{"type":"string"}},"maxItems":{}}})", k + 1);
        const bool is_bad = (i + k) % 4 == 0;
        num_ok += (*own)
                      ->compile({.answer = json_schema(
                                     is_bad ? R"({"type":"string","pattern":"(["})" : schema)})
                      .ok();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(num_ok, 60);
  EXPECT_EQ((*own)->cache_stats().num_entries, 11);  // any JSON object is there from the beginning
  EXPECT_GE((*own)->cache_stats().num_compiled - before, 10u);
}

// Schemas at random, good and bad: each is compiled or refused, and what is drawn under it is
// valid.
class RandomSchema {
 public:
  explicit RandomSchema(uint32_t seed) : random_(seed) {}

  bj::value schema(int depth) {
    const unsigned kind = random_() % (depth > 3 ? 6 : 11);
    switch (kind) {
      case 0: return {{"type", "string"}, {"minLength", number(4)}, {"maxLength", 4 + number(8)}};
      case 1:
        return {{"type", "integer"}, {"minimum", number(20) - 10}, {"maximum", number(20) + 8}};
      case 2: return {{"type", "boolean"}};
      case 3: return {{"enum", bj::array{"a", 1, nullptr, true, "ü\n"}}};
      case 4: return {{"type", "string"}, {"pattern", "^[a-f]{1,3}(x|yy)$"}};
      case 5: return {{"type", bj::array{"null", "integer"}}};
      case 6:
        return {{"type", "array"},
                {"items", schema(depth + 1)},
                {"minItems", number(2)},
                {"maxItems", 2 + number(2)}};
      case 7: return {{"anyOf", bj::array{schema(depth + 1), schema(depth + 1)}}};
      case 8:
        return {{"type", "array"},
                {"prefixItems", bj::array{schema(depth + 1), schema(depth + 1)}},
                {"items", false}};
      default: return object(depth);
    }
  }

  // One value somewhere becomes another.
  void break_something(bj::value& value) {
    if (value.is_object() && !value.get_object().empty() && random_() % 4 != 0) {
      auto& object = value.get_object();
      return break_something((object.begin() + random_() % object.size())->value());
    }
    if (value.is_array() && !value.get_array().empty() && random_() % 4 != 0) {
      return break_something(value.get_array()[random_() % value.get_array().size()]);
    }
    const std::vector<bj::value> others = {
        nullptr, -1,      1e300, "([", bj::array{}, bj::object{}, "#", bj::object{{"$ref", "#"}},
        true,    "strnig"};
    value = others[random_() % others.size()];
  }

 private:
  int number(unsigned bound) { return static_cast<int>(random_() % bound); }

  bj::value object(int depth) {
    bj::object properties;
    bj::array required;
    for (int i = 0, n = number(4); i < n; ++i) {
      const std::string name = "p" + std::to_string(i);
      properties[name] = schema(depth + 1);
      if (random_() % 2 == 0) required.emplace_back(name);
    }
    bj::object out{{"type", "object"}, {"properties", properties}, {"required", required}};
    if (random_() % 3 == 0) out["additionalProperties"] = false;
    return out;
  }

  std::mt19937 random_;
};

TEST(SchemaFuzz, WhatIsDrawnUnderARandomSchemaIsValid) {
  RandomSchema random(11);
  grammar_test::Walker walker(12);
  int num_finished = 0;
  for (int i = 0; i < 150; ++i) {
    const bj::value schema = random.schema(0);
    auto constraint = compiler().compile({.answer = json_schema(bj::serialize(schema))});
    ASSERT_TRUE(constraint.ok()) << constraint.error().message << bj::serialize(schema);
    const auto walk = walker.run(**constraint, 250);
    if (!walk.is_finished) continue;
    ++num_finished;
    const Transcript transcript = grammar_test::harmony()->parse(
        std::vector<int64_t>(walk.ids.begin(), walk.ids.end()), {.role = Role::kAssistant});
    auto value = json::parse(message_text(transcript.messages.back()), "answer");
    ASSERT_TRUE(value.ok()) << value.error().message;
    EXPECT_TRUE(grammar_test::SchemaValidator(schema).is_valid(*value))
        << bj::serialize(schema) << " " << bj::serialize(*value);
  }
  EXPECT_GT(num_finished, 135);
}

// Rules, regular expressions and tags out of their own signs, most of them nonsense.
TEST(SchemaFuzz, OtherSourcesAreCompiledOrRefusedCleanly) {
  using Kind = AnswerGrammar::Kind;
  const std::vector<std::pair<Kind, std::vector<std::string>>> languages = {
      {Kind::kRegex, {"a",   "b",   "(",     ")",   "[",  "]",       "^",   "$",   "*",
                      "+",   "?",   "{2,5}", "{3}", "|",  ".",       "\\d", "\\w", "\\b",
                      "(?:", "(?=", "\\1",   "-",   "\\", "\\u00e4", "ä",   "{",   "}"}},
      {Kind::kEbnf, {"root",      " ::= ",     "\n",    "a",
                     "b",         "\"x\"",     "[a-z]", "[^x]",
                     "(",         ")",         "*",     "+",
                     "?",         "|",         " ",     "{2,4}",
                     "\"",        "\\",        "#",     "root ::= \"a\"\n",
                     "a ::= b\n", "b ::= a\n", "(=",    "TagDispatch(",
                     "\"\""}},
      {Kind::kStructuralTag,
       {"{", "}", "[", "]", "\"type\"", ":", ",", "\"structural_tag\"", "\"format\"",
        "\"any_text\"", "\"sequence\"", "\"elements\"", "\"a\"",
        "{\"type\":\"structural_tag\",\"format\":", "{\"type\":\"any_text\"}",
        "{\"type\":\"const_string\",\"value\":\"\"}", "true", "1"}}};
  std::mt19937 random(14);
  int num_ok = 0, num_refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto& [kind, words] = languages[static_cast<size_t>(i) % languages.size()];
    std::string source = kind == Kind::kEbnf && random() % 2 == 0 ? "root ::= " : "";
    for (unsigned n = 1 + random() % 20; n > 0; --n) source += words[random() % words.size()];
    auto constraint = compiler().compile({.answer = {.kind = kind, .source = source}});
    ++(constraint.ok() ? num_ok : num_refused);
    if (constraint.ok()) continue;
    EXPECT_EQ(constraint.error().http_status, 400) << constraint.error().message << source;
    EXPECT_EQ(constraint.error().message.find('\n'), std::string::npos);
  }
  EXPECT_GT(num_ok, 50);
  EXPECT_GT(num_refused, 1000);
}

TEST(SchemaFuzz, ThousandsOfSchemasAreCompiledOrRefusedCleanly) {
  RandomSchema random(13);
  int num_ok = 0, num_refused = 0;
  double worst = 0;
  for (int i = 0; i < 3000; ++i) {
    bj::value schema = random.schema(0);
    if (i % 3 != 0) random.break_something(schema);
    const double begin = thread_seconds();
    auto constraint = compiler().compile({.answer = json_schema(bj::serialize(schema))});
    worst = std::max(worst, thread_seconds() - begin);
    ++(constraint.ok() ? num_ok : num_refused);
    if (!constraint.ok()) {
      EXPECT_EQ(constraint.error().http_status, 400) << constraint.error().message;
      EXPECT_EQ(constraint.error().message.find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(num_ok, 1000);
  EXPECT_GT(num_refused, 300);
  EXPECT_LT(worst, 1.5);
}

}  // namespace
}  // namespace briar
