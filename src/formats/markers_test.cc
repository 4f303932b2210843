// The parser of ChatML, Llama 3 and Mistral: what models write, well and badly, and its invariants
// on random streams.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <ctime>
#include <random>

#include "formats/test_support.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

using format_test::Answer;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;

struct Family {
  const char* name;
  TokenizerPtr tokenizer;
  std::shared_ptr<const Format> format;
};

const Family& family(std::string_view name) {
  static const std::vector<Family> families = [] {
    std::vector<Family> all = {{"chatml", format_test::chatml_tokenizer(), nullptr},
                               {"llama3", format_test::llama3_tokenizer(), nullptr},
                               {"mistral", format_test::mistral_tokenizer(), nullptr}};
    for (Family& f : all) f.format = make_format(f.name, f.tokenizer).value();
    return all;
  }();
  for (const Family& f : families) {
    if (f.name == name) return f;
  }
  ADD_FAILURE() << name;
  return families[0];
}

// What follows the prompt, special tokens spelled out, with the tools "f" and "g".
Answer parse(std::string_view name, std::string_view stream) {
  const Family& f = family(name);
  return format_test::parse_with(*f.format, f.tokenizer->encode_with_specials(stream),
                                 {.role = Role::kAssistant, .tool_names = {"f", "g"}});
}

std::string calls_of(const Answer& answer) {
  std::string text;
  for (const auto& [tool, arguments] : answer.calls) text += tool + arguments + ";";
  return text;
}

struct Case {
  const char* family;
  const char* name;
  const char* stream;
  const char* content;
  const char* reasoning;
  const char* calls;
  bool is_complete = true;
};

const Case kCases[] = {
    {"chatml", "answer", "Hello.<|im_end|>", "Hello.", "", ""},
    {"chatml", "end of text", "Hello.<|endoftext|>", "Hello.", "", ""},
    {"chatml", "no end", "Hello.", "Hello.", "", "", false},
    {"chatml", "nothing", "<|im_end|>", "", "", ""},
    {"chatml", "line breaks kept", "\n a\n\n<|im_end|>", "\n a\n\n", "", ""},
    {"chatml", "text behind the end", "a<|im_end|>\nb<|im_end|>", "a", "", ""},
    {"chatml", "redundant ends", "a<|im_end|><|im_end|><|endoftext|>", "a", "", ""},
    {"chatml", "header again", "<|im_start|>assistant\na<|im_end|>", "a", "", ""},
    {"chatml", "no end, next header", "a<|im_start|>assistant\nb<|im_end|>", "ab", "", ""},
    {"chatml", "a header that is none", "a<|im_end|><|im_start|>critic\nb<|im_end|>", "acritic\nb",
     "", ""},
    {"chatml", "cut in a header", "a<|im_end|>\n<|im_start|>assist", "a", "", "", false},
    {"chatml", "reasoning", "<think>\nhm\n\nso\n</think>\n\na<|im_end|>", "a", "hm\n\nso", ""},
    {"chatml", "empty reasoning", "<think>\n\n</think>\n\na<|im_end|>", "a", "", ""},
    {"chatml", "reasoning only", "<think>\nhm", "", "hm", "", false},
    {"chatml", "reasoning ends twice", "<think>hm</think></think>a<|im_end|>", "a", "hm", ""},
    {"chatml", "call",
     "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\"]}}\n"
     "</tool_call><|im_end|>",
     "", "", "f{\"a\": [1, \"}\"]};"},
    {"chatml", "calls",
     "Let me see.\n<tool_call>\n{\"name\":\"f\",\"arguments\":{}}\n</tool_call>\n"
     "<tool_call>\n{\"name\":\"g\",\"arguments\":{\"b\":{}}}\n</tool_call><|im_end|>",
     "Let me see.", "", "f{};g{\"b\":{}};"},
    {"chatml", "reasoning, call",
     "<think>\nhm\n</think>\n\n<tool_call>\n{\"name\": \"f\"}\n"
     "</tool_call><|im_end|>",
     "", "hm", "f{};"},
    {"chatml", "call not closed",
     "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}<|im_end|>", "", "", "f{\"a\": 1};"},
    {"chatml", "arguments cut", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": <|im_end|>",
     "", "", "f{\"a\": ;"},
    {"chatml", "cut before arguments", "<tool_call>{\"name\": \"f\", \"argu",
     "{\"name\": \"f\", \"argu", "", "", false},
    {"chatml", "no JSON", "<tool_call>f(1)</tool_call>b<|im_end|>", "f(1)b", "", ""},
    {"chatml", "not declared",
     "<tool_call>{\"name\": \"h\", \"arguments\": {}}</tool_call><|im_end|>",
     "{\"name\": \"h\", \"arguments\": {}}", "", ""},
    {"chatml", "keys in another order",
     "<tool_call>{\"arguments\": {\"a\": \"{\"}, \"name\": \"f\"}</tool_call><|im_end|>", "", "",
     "f{\"a\":\"{\"};"},
    {"chatml", "arguments as a string",
     "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call><|im_end|>", "",
     "", "f{\"a\": 1};"},
    {"chatml", "more keys behind",
     "<tool_call>{\"name\": \"f\", \"arguments\": {}, \"id\": [\"}\"]}"
     "</tool_call><|im_end|>",
     "", "", "f{};"},
    {"chatml", "two objects in one marker",
     "<tool_call>{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": "
     "{}}</tool_call>"
     "<|im_end|>",
     "", "", "f{};g{};"},
    {"chatml", "close without open", "a</tool_call>b<|im_end|>", "ab", "", ""},
    {"llama3", "answer", "Hello.<|eot_id|>", "Hello.", "", ""},
    {"llama3", "header again", "<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>",
     "Hello.", "", ""},
    {"llama3", "bare call", "{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|eot_id|>", "", "",
     "f{\"a\": 1};"},
    {"llama3", "bare call with a type",
     "{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"a\": 1}}<|eom_id|>", "", "",
     "f{\"a\":1};"},
    {"llama3", "two bare calls",
     "\n{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}<|eot_id|>", "",
     "", "f{};g{};"},
    {"llama3", "python tag", "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}<|eom_id|>", "",
     "", "f{};"},
    {"llama3", "python code", "<|python_tag|>print(1)<|eom_id|>", "print(1)", "", ""},
    {"llama3", "JSON that is no call", "{\"answer\": {\"name\": \"f\"}}<|eot_id|>",
     "{\"answer\": {\"name\": \"f\"}}", "", ""},
    {"llama3", "a brace later", "So: {\"name\": \"f\", \"parameters\": {}}<|eot_id|>",
     "So: {\"name\": \"f\", \"parameters\": {}}", "", ""},
    {"llama3", "text behind a call", "{\"name\": \"f\", \"parameters\": {}} ok?<|eot_id|>", " ok?",
     "", "f{};"},
    {"llama3", "white space only", " \n <|eot_id|>", " \n ", "", ""},
    {"mistral", "answer", " Hello.</s>", "Hello.", "", ""},
    {"mistral", "two spaces", "  a</s>", " a", "", ""},
    {"mistral", "calls",
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"g\", \"arguments\": "
     "{}}]</s>",
     "", "", "f{\"a\": 1};g{};"},
    {"mistral", "call with an id",
     "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}, \"id\": \"call00000\"}]</s>", "", "",
     "f{};"},
    {"mistral", "no tools called", "[TOOL_CALLS] []</s>", " []", "", ""},
    {"mistral", "end repeated", "a</s></s>", "a", "", ""},
};

TEST(Markers, WhatModelsWrite) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.family) + ": " + c.name);
    const Answer answer = parse(c.family, c.stream);
    EXPECT_EQ(answer.content, c.content);
    EXPECT_EQ(answer.reasoning, c.reasoning);
    EXPECT_EQ(calls_of(answer), c.calls);
    EXPECT_EQ(answer.is_complete, c.is_complete);
    EXPECT_FALSE(answer.messages.empty());
  }
}

TEST(Markers, ArgumentsStream) {
  const Answer answer = parse(
      "chatml", "<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \"abc\"}}</tool_call>");
  ASSERT_GT(answer.deltas.size(), 10u);  // one a character
  EXPECT_EQ(answer.deltas[0].tool_name, "f");
  EXPECT_EQ(answer.deltas[0].text, "");
  EXPECT_EQ(answer.deltas[1].text, "{");
}

TEST(Markers, MessagesAreWhatGoesBackIntoAHistory) {
  const Answer answer = parse("chatml",
                              "<think>\nr\n</think>\n\nt\n<tool_call>{\"name\": \"f\", "
                              "\"arguments\": {\"a\": 1}}</tool_call><|im_end|>");
  ASSERT_EQ(answer.messages.size(), 3u);
  EXPECT_EQ(answer.messages[0].kind, Delta::Kind::kReasoning);
  EXPECT_EQ(answer.messages[0].message.channel, "analysis");
  EXPECT_EQ(answer.messages[1].message.channel, "final");
  EXPECT_EQ(answer.messages[2].message.recipient, "functions.f");
  EXPECT_EQ(message_text(answer.messages[2].message), "{\"a\": 1}");
  EXPECT_EQ(answer.messages[2].tool_call_idx, 0);
}

TEST(Markers, SpellingsOfMarkersAreText) {
  const Family& f = family("chatml");
  const std::string text = "<think>a</think><tool_call>{}</tool_call><|im_end|>";
  const Answer answer = format_test::parse_with(*f.format, f.tokenizer->encode(text));
  EXPECT_EQ(answer.content, text);
  EXPECT_FALSE(answer.is_complete);
}

TEST(Markers, APromptThatOpensReasoningBeginsInIt) {
  const auto tokenizer = format_test::chatml_tokenizer();
  const auto format =
      make_format("chatml", tokenizer, "<tool_call><think>'<|im_start|>assistant\\n<think>\\n'")
          .value();
  PromptRequest request;
  request.messages = {text_message(Role::kUser, "Hi")};
  EXPECT_TRUE(format->text_of(format->render_prompt(request).value())
                  .ends_with("<|im_start|>assistant\n<think>\n"));
  const Answer answer = format_test::parse_with(
      *format, tokenizer->encode_with_specials("hm\n</think>\n\na<|im_end|>"));
  EXPECT_EQ(answer.reasoning, "hm");
  EXPECT_EQ(answer.content, "a");
}

TEST(Markers, ReasoningCanBeEnded) {
  const auto tokenizer = format_test::chatml_tokenizer();
  const auto gate = family("chatml").format->reasoning_gate();
  ASSERT_TRUE(gate.has_value());
  EXPECT_EQ(gate->end_id, tokenizer->special_id("</think>"));
  EXPECT_EQ(gate->reasoning_id, tokenizer->special_id("<think>"));
  EXPECT_FALSE(make_format("chatml", tokenizer, "<|im_start|>").value()->reasoning_gate());
  EXPECT_FALSE(family("llama3").format->reasoning_gate().has_value());
}

TEST(Markers, TranscriptsNameWhoSpeaks) {
  const auto roles_and_texts = [](std::string_view name, std::string_view stream) {
    const Family& f = family(name);
    const std::vector<int32_t> ids = f.tokenizer->encode_with_specials(stream);
    const std::vector<int64_t> wide(ids.begin(), ids.end());
    std::string out;
    for (const Message& m : f.format->parse(wide, {}).messages) {
      out += std::string(role_word(m.role)) + ":" + message_text(m) + ";";
    }
    return out;
  };
  EXPECT_EQ(roles_and_texts(
                "chatml", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo<|im_end|>\n"),
            "user:Hi;assistant:Yo;");
  EXPECT_EQ(
      roles_and_texts("llama3",
                      "<|begin_of_text|><|start_header_id|>ipython<|end_header_id|>\n\n1<|eot_id|>"
                      "<|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>"),
      "tool:1;assistant:Yo;");
  EXPECT_EQ(roles_and_texts("mistral", "<s>[INST] Hi[/INST] Yo</s>[INST] So[/INST]"),
            "user: Hi;assistant:Yo;user: So;assistant:;");
}

// Random streams of markers, JSON and text: never a failure, no text lost or invented, whole
// characters only, and the deltas say what the messages say.
TEST(Markers, InvariantsOnRandomStreams) {
  const std::vector<std::string> pieces = {"a",
                                           " ",
                                           "\n",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           "\"",
                                           "\\",
                                           ",",
                                           "{\"name\": \"f\", \"arguments\": {",
                                           "{\"name\":\"g\"",
                                           "\"arguments\":",
                                           "é",
                                           "🙂",
                                           "\xF0\x9F",
                                           "\x99",
                                           "x</tool_call",
                                           "assistant\n"};
  std::mt19937 random(11);
  for (const char* name : {"chatml", "llama3", "mistral"}) {
    const Family& f = family(name);
    for (int round = 0; round < 4000; ++round) {
      std::vector<int32_t> ids;
      for (size_t n = random() % 24; n > 0; --n) {
        if (random() % 3 == 0) {
          ids.push_back(static_cast<int32_t>(257 + random() % 11));  // special, or no token
        } else if (random() % 40 == 0) {
          ids.push_back(random() % 2 == 0 ? -1 : 1 << 30);
        } else {
          f.tokenizer->encode(pieces[random() % pieces.size()], ids);
        }
      }
      const Answer answer = format_test::parse_with(
          *f.format, ids, {.role = Role::kAssistant, .tool_names = {"f", "g"}});
      std::string from_deltas, from_messages;
      for (const Delta& delta : answer.deltas) {
        ASSERT_EQ(lossy_utf8(delta.text), delta.text);
        ASSERT_LT(delta.message_idx, static_cast<int>(answer.messages.size()));
        ASSERT_EQ(answer.messages[static_cast<size_t>(delta.message_idx)].kind, delta.kind);
        from_deltas += delta.text;
      }
      for (const ParsedMessage& m : answer.messages) from_messages += message_text(m.message);
      ASSERT_EQ(from_deltas, from_messages) << f.tokenizer->decode(ids);
    }
  }
}

TEST(Markers, LongStreamsTakeLinearTime) {
  const Family& f = family("llama3");
  for (const std::string unit :
       {"{", "{\"name\": \"", "\n", " ", "[", "{\"name\": \"f\", \"parameters\": {"}) {
    std::string text;
    while (text.size() < 300000) text += unit;
    const std::clock_t start = std::clock();  // processor time: the machine may be busy
    format_test::parse_with(*f.format, f.tokenizer->encode(text),
                            {.role = Role::kAssistant, .tool_names = {"f"}});
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 3.0) << testing::PrintToString(unit);
  }
}

}  // namespace
}  // namespace briar
