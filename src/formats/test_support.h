// What the tests of formats share.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/registry.h"
#include "tokenizer/gguf_vocabulary.h"

namespace briar::format_test {

namespace bj = boost::json;

inline std::shared_ptr<const Tokenizer> tokenizer() { return Tokenizer::bundled_o200k_harmony(); }

inline std::shared_ptr<const Format> harmony() {
  static const auto format = make_format("harmony", tokenizer());
  return *format;
}

inline std::vector<bj::value> read_lines(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path << " is missing";
  std::vector<bj::value> lines;
  for (std::string line; std::getline(file, line);) {
    auto value = json::parse(line, path);
    EXPECT_TRUE(value.ok()) << value.error().message;
    lines.push_back(std::move(*value));
  }
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

inline std::vector<bj::value> harmony_cases(const std::string& name) {
  return read_lines(std::string(BRIAR_ASSETS_DIR) + "/harmony/harmony/" + name);
}

// Text in which <|start|> and its like are structure.
inline std::vector<int32_t> structured(std::string_view text) {
  return tokenizer()->encode_with_specials(text);
}

// A byte-level tokenizer of single bytes and these special tokens, from id 256 on.
inline std::shared_ptr<const Tokenizer> byte_tokenizer(const std::vector<std::string>& specials) {
  GgufVocabulary gguf{.model = "gpt2", .pre = "gpt-2"};
  char32_t next = 256;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const char32_t c = is_printable ? byte : next++;
    gguf.tokens.push_back(c < 0x80 ? std::string(1, static_cast<char>(c))
                                   : std::string{static_cast<char>(0xC0 | c >> 6),
                                                 static_cast<char>(0x80 | (c & 63))});
  }
  gguf.token_types.assign(256, GgufVocabulary::kNormal);
  gguf.merges = {"a b"};
  gguf.tokens.push_back("ab");
  gguf.token_types.push_back(GgufVocabulary::kNormal);
  for (const std::string& special : specials) {
    gguf.tokens.push_back(special);
    gguf.token_types.push_back(GgufVocabulary::kControl);
  }
  return Tokenizer::from_gguf(gguf, "test").value();
}

inline std::shared_ptr<const Tokenizer> chatml_tokenizer() {
  static const auto tokenizer =
      byte_tokenizer({"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>",
                      "<tool_response>", "</tool_response>", "<think>", "</think>"});
  return tokenizer;
}

inline std::shared_ptr<const Tokenizer> llama3_tokenizer() {
  static const auto tokenizer =
      byte_tokenizer({"<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>",
                      "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"});
  return tokenizer;
}

inline std::shared_ptr<const Tokenizer> mistral_tokenizer() {
  static const auto tokenizer =
      byte_tokenizer({"<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]",
                      "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"});
  return tokenizer;
}

// A stream, parsed whole, the way the server puts it together.
struct Answer {
  std::string content;
  std::string reasoning;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
  std::vector<Delta> deltas;
  std::vector<ParsedMessage> messages;
  ParserWarnings warnings;
  bool is_complete = false;
};

inline Answer parse_with(const Format& format, const std::vector<int32_t>& ids,
                         ParserOptions options = {}) {
  auto parser = format.make_parser(std::move(options));
  Answer answer;
  for (const int32_t id : ids) parser->push(id, answer.deltas);
  parser->finish(answer.deltas);
  for (const Delta& delta : answer.deltas) {
    switch (delta.kind) {
      case Delta::Kind::kContent: answer.content += delta.text; break;
      case Delta::Kind::kReasoning: answer.reasoning += delta.text; break;
      case Delta::Kind::kToolCall:
        if (!delta.tool_name.empty()) answer.calls.emplace_back(delta.tool_name, "");
        EXPECT_EQ(delta.tool_call_idx + 1, static_cast<int>(answer.calls.size()));
        answer.calls.back().second += delta.text;
    }
  }
  answer.messages = parser->messages();
  answer.warnings = parser->warnings();
  answer.is_complete = parser->is_complete();
  return answer;
}

inline Answer parse(const std::vector<int32_t>& ids, ParserOptions options = {}) {
  return parse_with(*harmony(), ids, std::move(options));
}

inline Answer parse(std::string_view text, ParserOptions options = {}) {
  return parse(structured(text), std::move(options));
}

}  // namespace briar::format_test
