// The tolerant parser on malformed streams, and its invariants on random ones.
#include <random>

#include "formats/harmony_test_support.h"
#include "formats/message_json.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

struct Case {
  const char* name;
  const char* stream;  // after <|start|>assistant
  const char* content;
  const char* reasoning;
  const char* call = "";  // arguments of functions.f
};

const Case kCases[] = {
    {"unknown channel", "<|channel|>mardown<|message|>x<|end|>", "", "x"},
    {"punctuated channel", "<|channel|>commentary?<|message|>x<|end|>", "", "x"},
    {"no channel", "<|message|>x<|end|>", "x", ""},
    {"empty channel", "<|channel|><|message|>x<|end|>", "x", ""},
    {"space after channel", "<|channel|> analysis<|message|>x<|end|>", "", "x"},
    {"whole prompt opening again", "<|start|>assistant<|channel|>final<|message|>x<|end|>", "x",
     ""},
    {"start twice",
     "<|channel|>final<|message|>x<|end|><|start|><|start|>assistant<|message|>y<|end|>", "xy", ""},
    {"role twice", "assistant assistant<|channel|>final<|message|>x<|end|>", "x", ""},
    {"no end",
     "<|channel|>analysis<|message|>x<|start|>assistant<|channel|>final<|message|>y<|end|>", "y",
     "x"},
    {"no end, no start", "<|channel|>analysis<|message|>x<|channel|>final<|message|>y<|end|>", "y",
     "x"},
    {"no start",
     "<|channel|>analysis<|message|>x<|end|>assistant<|channel|>final<|message|>y<|end|>", "y",
     "x"},
    {"message twice", "<|channel|>final<|message|>x<|message|>y<|end|>", "xy", ""},
    {"message alone", "<|channel|>analysis<|message|>x<|end|><|message|>y<|end|>", "y", "x"},
    {"refusal", "I must refuse<|end|>", "I must refuse", ""},
    {"refusal, spaces kept", "I  must\n\nrefuse <|end|>", "I  must\n\nrefuse ", ""},
    {"refusal in analysis",
     "<|channel|>analysis I refuse<|end|><|start|>assistant<|channel|>final"
     "<|message|>No.<|return|>",
     "No.", "I refuse"},
    {"channel and prose", "<|channel|>Sure, here it is<|end|>", "Sure, here it is", ""},
    {"second header lost",
     "<|channel|>analysis<|message|>x<|end|><|start|>assistant I refuse<|end|>"
     "<|start|>assistant<|channel|>final<|message|>y<|return|>",
     "I refusey", "x"},
    {"end of text ends", "<|channel|>final<|message|>x<|endoftext|>", "x", ""},
    {"recipient before channel", " to=functions.f<|channel|>commentary<|message|>{}<|call|>", "",
     "", "{}"},
    {"recipient in analysis", "<|channel|>analysis to=functions.f code<|message|>{}<|call|>", "",
     "", "{}"},
    {"recipient without namespace", "<|channel|>commentary to=f<|message|>{}<|call|>", "", "",
     "{}"},
    {"recipient without to=", "<|channel|>commentary functions.f json<|message|>{}<|call|>", "", "",
     "{}"},
    {"space after to=", "<|channel|>commentary to= functions.f<|message|>{}<|call|>", "", "", "{}"},
    {"two recipients",
     "<|channel|>commentary to=functions.f code to=functions.f<|message|>{}<|call|>", "", "", "{}"},
    {"glued recipient", "<|channel|>commentaryto=functions.f<|message|>{}<|call|>", "", "", "{}"},
    {"type before recipient", "<|channel|>commentary json to=functions.f<|message|>{}<|call|>", "",
     "", "{}"},
    {"space after constrain",
     "<|channel|>commentary to=functions.f <|constrain|> json<|message|>{}<|call|>", "", "", "{}"},
    {"call without message",
     "<|channel|>commentary to=functions.f <|constrain|>json {\"a\":1}<|call|>", "", "",
     "{\"a\":1}"},
    {"call without message, glued",
     "<|channel|>commentary to=functions.f <|constrain|>json{\"a\":1}<|call|>", "", "",
     "{\"a\":1}"},
    {"call cut short", "<|channel|>commentary to=functions.f<|message|>{\"a", "", "", "{\"a"},
    {"nobody serves it", "<|channel|>commentary to=functions.g<|message|>{}<|call|>", "{}", ""},
    {"tool speaks",
     "<|channel|>analysis<|message|>x<|end|><|start|>functions.f to=assistant<|channel|>"
     "commentary<|message|>made up<|end|>",
     "made up", "x"},
    {"typed answer", "<|channel|>final <|constrain|>json<|message|>{}<|return|>", "{}", ""},
};

TEST(TolerantParser, MalformedStreams) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const Answer answer = parse(c.stream, {.role = Role::kAssistant, .tool_names = {"f"}});
    EXPECT_EQ(answer.content, c.content);
    EXPECT_EQ(answer.reasoning, c.reasoning);
    std::string call;
    for (const auto& [name, arguments] : answer.calls) {
      EXPECT_EQ(name, "f");
      call += arguments;
    }
    EXPECT_EQ(call, c.call);
  }
}

TEST(TolerantParser, TypedAnswerHasNoRecipient) {
  const Answer answer = parse("<|channel|>final <|constrain|>json<|message|>{}<|return|>");
  EXPECT_EQ(answer.messages.at(0).message.recipient, std::nullopt);
  EXPECT_EQ(answer.messages.at(0).message.content_type, "<|constrain|>json");
}

TEST(TolerantParser, SpelledMarkersAreText) {
  std::vector<int32_t> ids = structured("<|channel|>final<|message|>");
  format_test::tokenizer()->encode("<|end|><|start|>assistant<|channel|>analysis", ids);
  const Answer answer = parse(ids);
  EXPECT_EQ(answer.content, "<|end|><|start|>assistant<|channel|>analysis");
  EXPECT_FALSE(answer.is_complete);
}

TEST(TolerantParser, LongAnswerWithoutHeaderStreams) {
  auto parser = harmony()->make_parser({});
  std::vector<Delta> out;
  std::string text;
  for (int i = 0; i < 300; ++i) text += " word";
  const std::vector<int32_t> ids = format_test::tokenizer()->encode(text);
  for (const int32_t id : ids) parser->push(id, out);
  EXPECT_GT(out.size(), 100u);
  parser->finish(out);
  EXPECT_EQ(message_text(parser->messages().at(0).message), text);
}

TEST(TolerantParser, WarningsCount) {
  EXPECT_EQ(parse("<|channel|>final<|message|>x<|return|>").warnings.total(), 0);
  EXPECT_EQ(parse("<|channel|>final a b<|message|>x<|return|>").warnings.repaired_headers, 1);
  EXPECT_EQ(parse("<|channel|>final<|message|>x<|end|> a b c<|return|>").warnings.skipped_tokens,
            3);
}

class RandomStreams : public ::testing::Test {
 protected:
  int pick(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

  int32_t random_id() {
    static const std::vector<int32_t> kWords = structured(
        "<|start|><|end|><|message|><|channel|><|constrain|><|return|><|call|>"
        "<|endoftext|>assistant analysis final commentary to=functions.f json {}");
    static constexpr int32_t kOdd[] = {-1, 199998, 200000, 201087, 201088, 2147483647, -2147483647};
    switch (pick(8)) {
      case 0: return pick(201088);
      case 1: return pick(256);
      case 2: return kOdd[pick(std::size(kOdd))];
      default: return kWords[static_cast<size_t>(pick(static_cast<int>(kWords.size())))];
    }
  }

  std::mt19937 random_{20251128};
};

bool is_whole_utf8(std::string_view text) { return lossy_utf8(text) == text; }

// Whatever comes: no throw, whole characters, and the deltas of a message add up to its text.
TEST_F(RandomStreams, NeverFailAndAddUp) {
  for (int round = 0; round < 3000; ++round) {
    SCOPED_TRACE(round);
    ParserOptions options;
    if (pick(3) == 0) options.role = std::nullopt;
    if (pick(2) == 0) options.tool_names = {"f"};
    auto parser = harmony()->make_parser(options);
    std::vector<Delta> out;
    for (int i = pick(60); i > 0; --i) parser->push(random_id(), out);
    if (pick(20) == 0) {
      for (int i = 0; i < 200; ++i) parser->push(pick(1000), out);
    }
    parser->finish(out);
    std::vector<std::string> texts(parser->messages().size());
    for (const Delta& delta : out) {
      ASSERT_LT(static_cast<size_t>(delta.message_idx), texts.size());
      const ParsedMessage& parsed = parser->messages()[static_cast<size_t>(delta.message_idx)];
      EXPECT_EQ(delta.kind, parsed.kind);
      EXPECT_TRUE(is_whole_utf8(delta.text));
      texts[static_cast<size_t>(delta.message_idx)] += delta.text;
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i], message_text(parser->messages()[i].message));
    }
  }
}

// The library's parser must not throw either, whatever its errors.
TEST_F(RandomStreams, LibraryParserNeverThrows) {
  int num_errors = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<int64_t> ids;
    for (int i = pick(60); i > 0; --i) ids.push_back(random_id());
    TranscriptOptions options;
    options.strict_library = true;
    options.continue_on_error = true;
    options.is_strict_grammar = pick(2) == 0;
    if (pick(2) == 0) options.role = Role::kAssistant;
    num_errors += static_cast<int>(harmony()->parse(ids, options).errors.size());
  }
  EXPECT_GT(num_errors, 1000);
}

class RandomMessages : public RandomStreams {
 protected:
  std::string random_text() {
    static const char* const kPieces[] = {"Hello",
                                          " world",
                                          "\n",
                                          "<|end|>",
                                          "{\"a\":1}",
                                          "  ",
                                          "\xE6\xBC\xA2\xE5\xAD\x97",
                                          "\xF0\x9F\x99\x82",
                                          "to=f",
                                          "analysis",
                                          "0",
                                          ""};
    std::string text;
    for (int i = pick(8); i > 0; --i) text += kPieces[pick(std::size(kPieces))];
    return text;
  }

  Message random_message() {
    const std::string text = random_text();
    switch (pick(8)) {
      case 0: return text_message(Role::kUser, text);
      case 1: return text_message(Role::kSystem, text);
      case 2: return text_message(Role::kDeveloper, text);
      case 3: return reasoning_message(text);
      case 4: return answer_message(text);
      case 5: return tool_call_message(pick(2) == 0 ? "f" : "get-weather.now", text);
      case 6: return tool_result_message("get_weather", text);
      default: {
        Message message = text_message(pick(2) == 0 ? Role::kUser : Role::kAssistant, text);
        if (pick(2) == 0) message.name = "alice";
        if (pick(2) == 0) message.channel = "commentary";
        if (pick(2) == 0) message.content_type = pick(2) == 0 ? "json" : "<|constrain|>json";
        if (pick(2) == 0) message.recipient = "browser.search";
        return message;
      }
    }
  }
};

TEST_F(RandomMessages, RenderingParsesBack) {
  for (int round = 0; round < 1000; ++round) {
    std::vector<Message> messages;
    for (int i = 1 + pick(6); i > 0; --i) messages.push_back(random_message());
    RenderOptions options;
    options.mode = RenderMode::kConversation;
    options.drop_analysis = false;
    const auto ids = harmony()->render(messages, options);
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    const Answer answer = parse(*ids, {.role = std::nullopt, .tool_names = {}});
    ASSERT_EQ(answer.messages.size(), messages.size());
    EXPECT_EQ(answer.warnings.total(), 0);
    EXPECT_TRUE(answer.is_complete);
    for (size_t i = 0; i < messages.size(); ++i) {
      EXPECT_EQ(message_to_json(answer.messages[i].message), message_to_json(messages[i]))
          << harmony()->text_of(*ids);
    }
  }
}

}  // namespace
}  // namespace briar
