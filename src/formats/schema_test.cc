// JSON schemas as TypeScript: what the default rendering adds to the library's, and its limits.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "formats/harmony_schema.h"
#include "formats/json_text.h"
#include "formats/message_json.h"
#include "formats/test_support.h"

namespace briar {
namespace {

std::string type_of(std::string_view schema, bool strict_library = false) {
  auto parsed = json::parse(schema, "schema");
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return schema_to_typescript(*parsed, strict_library);
}

struct Case {
  const char* schema;
  const char* ours;
  const char* librarys;
};

const Case kCases[] = {
    {R"({"type":"integer","enum":[1,2,3]})", "1 | 2 | 3", "number"},
    {R"({"enum":["a",null,true]})", R"("a" | null | true)", "any"},
    {R"({"type":"string","enum":["say \"x\""]})", R"("say \"x\"")", R"("say "x"")"},
    {R"({"const":"x"})", R"("x")", "any"},
    {R"({"const":1.0})", "1.0", "any"},
    {R"({"type":"null"})", "null", "any"},
    {R"({"anyOf":[{"type":"string"},{"type":"null"}]})", "\n | string\n | null", "any"},
    {R"({"allOf":[{"type":"string"}]})", "string", "any"},
    {R"({"items":{"type":"string"}})", "string[]", "any"},
    {R"({"properties":{"a":{"type":"string"}}})", "{\na?: string,\n}", "any"},
    {R"({"type":"array","items":{"type":["string","null"]}})", "(string | null)[]",
     "string | null[]"},
    {R"({"type":"array","items":{"type":"string","nullable":true}})", "(string | null)[]",
     "string[]"},
    {R"({"type":["array","null"],"items":{"type":"string"}})", "string[] | null", "array | null"},
    {R"({"type":"object","properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"integer"}}})",
     "{\np?: number,\n}", "{\np?: any,\n}"},
    {R"({"type":"object","properties":{"p":{"type":"string","description":"L1\nL2"}}})",
     "{\n// L1\n// L2\np?: string,\n}", "{\n// L1\nL2\np?: string,\n}"},
    {R"({"type":"object","properties":{"p":{"anyOf":[{"type":"integer","description":"A\nB"}]}}})",
     "{\np?:\n | number // A B\n,\n}", "{\np?: any,\n}"},
    {R"({"type":"object","properties":{"p":{"type":"string","default":"a\nb"}}})",
     "{\np?: string, // default: \"a\\nb\"\n}", "{\np?: string, // default: \"a\nb\"\n}"},
    {R"({"type":"object","properties":{"p":{"type":"integer","examples":[1]}}})",
     "{\n// Examples:\n// - 1\np?: number,\n}", "{\n// Examples:\np?: number,\n}"},
};

TEST(Schema, ImprovementsOverTheLibrary) {
  for (const Case& c : kCases) {
    EXPECT_EQ(type_of(c.schema), c.ours) << c.schema;
    EXPECT_EQ(type_of(c.schema, true), c.librarys) << c.schema;
  }
}

TEST(Schema, ReferencesThatLeadNowhereAreAny) {
  EXPECT_EQ(type_of(R"({"$ref":"#"})"), "any");
  EXPECT_EQ(type_of(R"({"$ref":"#/$defs/missing"})"), "any");
  EXPECT_EQ(type_of(R"({"$ref":"https://example.com/x"})"), "any");
  EXPECT_EQ(type_of(R"({"type":"object","properties":{"next":{"$ref":"#"}}})"),
            "{\nnext?: {\n    next?: any,\n    },\n}");
}

TEST(Schema, UnfoldingIsBounded) {
  // Each level refers twice to the next: 2^40 types if nothing stopped it.
  std::string schema = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 40; ++i) {
    const std::string next = R"({"$ref":"#/$defs/d)" + std::to_string(i + 1) + "\"}";
    schema += "\"d" + std::to_string(i) + R"(":{"anyOf":[)" + next + "," + next + "]},";
  }
  schema += R"("d40":{"type":"string"}}})";
  EXPECT_LT(type_of(schema).size(), size_t{2} << 20);
}

// A default rendering that has nothing to improve is the library's.
TEST(Schema, LibraryCasesMostlyStayTheSame) {
  size_t num_same = 0;
  const auto lines = format_test::harmony_cases("schema.jsonl");
  for (const auto& line : lines) {
    const auto tool = tool_from_json(line.at("tool"));
    ASSERT_TRUE(tool.ok());
    num_same += harmony_tool_declaration(*tool, false) == harmony_tool_declaration(*tool, true);
  }
  EXPECT_GE(num_same, lines.size() * 8 / 10);
  EXPECT_LT(num_same, lines.size());
}

TEST(JsonText, NumbersAreSpelledAsInRust) {
  const std::pair<double, const char*> kNumbers[] = {{0.0, "0.0"},
                                                     {-0.0, "-0.0"},
                                                     {1.0, "1.0"},
                                                     {-2.5, "-2.5"},
                                                     {1e10, "10000000000.0"},
                                                     {1e15, "1000000000000000.0"},
                                                     {1e16, "1e16"},
                                                     {1.5e300, "1.5e300"},
                                                     {0.1, "0.1"},
                                                     {1e-5, "0.00001"},
                                                     {1e-7, "1e-7"},
                                                     {1.25e-7, "1.25e-7"},
                                                     {123456.789, "123456.789"}};
  for (const auto& [value, text] : kNumbers) EXPECT_EQ(json_double(value), text);
}

TEST(JsonText, StringsAreEscaped) {
  EXPECT_EQ(json_quote("a\"\\\n\x01\x7F\xC3\xA9"), "\"a\\\"\\\\\\n\\u0001\x7F\xC3\xA9\"");
  EXPECT_EQ(compact_json(*json::parse(R"({ "k" : [1, -2, null, true, 1e2] })", "x")),
            R"({"k":[1,-2,null,true,100.0]})");
}

TEST(Lines, EndAtLineFeeds) {
  using Lines = std::vector<std::string_view>;
  EXPECT_EQ(split_lines(""), Lines{});
  EXPECT_EQ(split_lines("a\r\nb\n\nc\r"), (Lines{"a", "b", "", "c\r"}));
  EXPECT_EQ(split_lines("\n"), Lines{""});
}

TEST(MessageJson, RoundTrips) {
  for (const auto& line : format_test::harmony_cases("render.jsonl")) {
    const auto* conversation = line.as_object().if_contains("conversation");
    if (conversation == nullptr || line.as_object().contains("expected_error")) continue;
    const auto messages = conversation_from_json(*conversation);
    ASSERT_TRUE(messages.ok()) << messages.error().message;
    for (const Message& message : *messages) {
      const auto again = message_from_json(message_to_json(message));
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(message_to_json(*again), message_to_json(message));
    }
  }
}

TEST(MessageJson, RejectsWhatIsNoMessage) {
  for (const char* bad :
       {"1", "{}", R"({"role":"user"})", R"({"role":"user","content":null})",
        R"({"role":"user","content":[1]})", R"({"role":"user","content":[{"type":"image"}]})",
        R"({"role":"user","content":"x","name":1})", R"({"role":"critic","content":"x"})",
        R"({"role":"system","content":[{"type":"system_content","reasoning_effort":"low"}]})",
        R"({"role":"developer","content":[{"type":"developer_content","tools":[]}]})"}) {
    EXPECT_FALSE(message_from_json(*json::parse(bad, "x")).ok()) << bad;
  }
}

}  // namespace
}  // namespace briar
