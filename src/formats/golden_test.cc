// Every case of the reference library, token for token.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "formats/format_records.h"
#include "formats/harmony_library_parser.h"
#include "formats/message_json.h"
#include "formats/test_support.h"

namespace briar {
namespace {

using format_test::harmony;
using format_test::harmony_cases;
namespace bj = boost::json;

std::string_view text_of(const bj::value& value) { return value.get_string(); }

TEST(Golden, Render) {
  EXPECT_GE(harmony_cases("render.jsonl").size(), 150u);
  for (const bj::value& line : harmony_cases("render.jsonl")) {
    SCOPED_TRACE(std::string(text_of(line.at("name"))));
    const auto got = render_record(*harmony(), line, true);
    ASSERT_TRUE(got.ok()) << got.error().message;
    if (const bj::value* error = line.get_object().if_contains("expected_error")) {
      ASSERT_TRUE(got->contains("error"));
      EXPECT_EQ(got->at("error"), *error);
      continue;
    }
    ASSERT_FALSE(got->contains("error")) << got->at("error");
    EXPECT_EQ(got->at("tokens"), line.at("expected_tokens")) << got->at("text");
  }
}

TEST(Golden, Schema) {
  EXPECT_GE(harmony_cases("schema.jsonl").size(), 131u);
  for (const bj::value& line : harmony_cases("schema.jsonl")) {
    SCOPED_TRACE(std::string(text_of(line.at("name"))));
    const auto got = schema_record(*harmony(), line, true);
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_FALSE(got->contains("error")) << got->at("error");
    EXPECT_EQ(text_of(got->at("declaration")), text_of(line.at("expected_declaration")));
    EXPECT_EQ(got->at("tokens"), line.at("expected_message_tokens"));
  }
}

TEST(Golden, Chat) {
  EXPECT_GE(harmony_cases("chat.jsonl").size(), 20u);
  for (const bj::value& line : harmony_cases("chat.jsonl")) {
    SCOPED_TRACE(std::string(text_of(line.at("name"))));
    const bj::value& expected = line.at("harmony_equivalent");
    const auto got = render_record(*harmony(), expected, true);
    ASSERT_TRUE(got.ok()) << got.error().message;
    ASSERT_FALSE(got->contains("error")) << got->at("error");
    EXPECT_EQ(got->at("tokens"), expected.at("expected_tokens")) << got->at("text");
  }
}

TEST(Golden, Parse) {
  EXPECT_GE(harmony_cases("parse.jsonl").size(), 173u);
  for (const bj::value& line : harmony_cases("parse.jsonl")) {
    SCOPED_TRACE(std::string(text_of(line.at("name"))));
    const auto got = parse_record(*harmony(), line, true);
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(got->at("messages"), line.at("expected_messages"));
    const bj::value* errors = line.get_object().if_contains("expected_errors");
    EXPECT_EQ(got->at("errors"), errors != nullptr ? *errors : bj::value(bj::array()));
  }
}

bj::value optional_json(const std::optional<std::string>& text) {
  return text ? bj::value(bj::string(*text)) : bj::value(nullptr);
}

// The parser's state as the traces record it.
bj::object state_of(const HarmonyLibraryParser& parser) {
  constexpr const char* kStates[] = {"ExpectStart", "Header", "Content"};
  const HarmonyHeader header = parser.current_header();
  bj::object state;
  state["state"] = kStates[static_cast<int>(parser.state())];
  const auto role = parser.current_role();
  state["role"] = role ? bj::value(role_word(*role)) : bj::value(nullptr);
  state["channel"] = optional_json(header.channel);
  state["recipient"] = optional_json(header.recipient);
  state["content_type"] = optional_json(header.content_type);
  state["delta"] = optional_json(parser.last_delta());
  state["content"] = parser.current_content();
  state["n_messages"] = parser.messages().size();
  return state;
}

void expect_state(const HarmonyLibraryParser& parser, const Status& status, bj::object expected) {
  expected.erase("token");
  if (const bj::value* error = expected.if_contains("error")) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(text_of(*error), status.error().message);
    expected.erase("error");
  }
  EXPECT_EQ(bj::value(state_of(parser)), bj::value(expected));
}

void replay(const bj::object& line) {
  const auto tokens = HarmonyTokens::find(*format_test::tokenizer());
  ASSERT_TRUE(tokens.ok());
  const bj::value& role = line.at("role");
  HarmonyLibraryParser parser(*format_test::tokenizer(), *tokens,
                              role.is_null() ? std::nullopt : role_from_word(text_of(role)),
                              line.at("strict").as_bool());
  const bj::value* trace = line.if_contains("trace");
  size_t step = 0;
  const bool goes_on = line.contains("continue_on_error");
  bool has_failed = false;
  const auto check = [&](const Status& status) {
    has_failed = !status && !goes_on;
    if (trace != nullptr) expect_state(parser, status, trace->at(step++).as_object());
  };
  for (const bj::value& id : line.at("tokens").as_array()) {
    if (!has_failed) check(parser.push(id.as_int64()));
  }
  if (line.at("process_eos").as_bool() && !has_failed) check(parser.finish());
  if (trace != nullptr) {
    EXPECT_EQ(step, trace->as_array().size());
  }
  if (const bj::value* state = line.if_contains("expected_state")) {
    expect_state(parser, Ok{}, state->as_object());
  }
}

TEST(Golden, ParseTrace) {
  int num_replayed = 0;
  for (const bj::value& line : harmony_cases("parse.jsonl")) {
    const bj::object& object = line.as_object();
    if (!object.contains("trace") && !object.contains("expected_state")) continue;
    SCOPED_TRACE(std::string(text_of(object.at("name"))));
    replay(object);
    ++num_replayed;
  }
  EXPECT_GT(num_replayed, 30);
}

std::vector<bj::value> streaming_cases() {
  return format_test::read_lines(std::string(BRIAR_ASSETS_DIR) +
                                 "/harmony/tokenization/streaming.jsonl");
}

TEST(Golden, LibraryDecoder) {
  for (const bj::value& line : streaming_cases()) {
    SCOPED_TRACE(std::string(text_of(line.at("name"))));
    HarmonyLibraryDecoder decoder;
    std::string text;
    bj::array deltas;
    for (const bj::value& id : line.at("ids").as_array()) {
      const auto bytes = format_test::tokenizer()->token_bytes(static_cast<int32_t>(id.as_int64()));
      const std::string delta = decoder.push(bytes);
      deltas.push_back(delta.empty() ? bj::value(nullptr) : bj::value(bj::string(delta)));
      text += delta;
    }
    EXPECT_EQ(bj::value(deltas), line.at("harmony_deltas"));
    EXPECT_EQ(text + decoder.finish(), text_of(line.at("harmony_final_content")));
  }
}

// The tolerant parser gives each character out with the id that completes it, and loses none.
TEST(Golden, TolerantDecoder) {
  for (const bj::value& value : streaming_cases()) {
    const bj::object& line = value.as_object();
    if (!line.contains("ideal_stream_deltas")) continue;
    SCOPED_TRACE(std::string(text_of(line.at("name"))));
    auto parser = harmony()->make_parser({});
    std::vector<Delta> out;
    for (const int32_t id : format_test::structured("<|channel|>final<|message|>")) {
      parser->push(id, out);
    }
    std::string got;
    std::string ideal;
    const bj::array& ids = line.at("ids").as_array();
    for (size_t i = 0; i < ids.size(); ++i) {
      out.clear();
      parser->push(static_cast<int32_t>(ids[i].as_int64()), out);
      for (const Delta& delta : out) got += delta.text;
      ideal += text_of(line.at("ideal_stream_deltas").at(i));
      // Ours may be earlier where a byte cannot continue a character (a surrogate's second byte).
      EXPECT_TRUE(got.starts_with(ideal)) << "after id " << i << ": " << got << " vs " << ideal;
      if (line.at("valid_utf8").as_bool()) {
        EXPECT_EQ(got, ideal);
      }
    }
    parser->finish(out);
    EXPECT_EQ(message_text(parser->messages().at(0).message), text_of(line.at("lossy_text")));
  }
}

}  // namespace
}  // namespace briar
