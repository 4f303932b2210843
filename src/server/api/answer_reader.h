// One choice's sampled ids, read as they come: deltas with stop strings applied.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/format.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/stop_strings.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// Plain text as a format without structure: every token is content, one message.
class PlainTextParser final : public StreamParser {
 public:
  PlainTextParser(std::shared_ptr<const Tokenizer> tokenizer, bool skips_special_tokens)
      : tokenizer_(std::move(tokenizer)), skips_special_tokens_(skips_special_tokens) {}

  void push(int32_t id, std::vector<Delta>& out) override;
  void finish(std::vector<Delta>& out) override;
  const std::vector<ParsedMessage>& messages() const override { return messages_; }
  const ParserWarnings& warnings() const override { return warnings_; }
  bool is_complete() const override { return true; }
  std::optional<Delta::Kind> open_kind() const override { return Delta::Kind::kContent; }

 private:
  void emit(std::string text, std::vector<Delta>& out) const;

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const bool skips_special_tokens_;
  Utf8Stream utf8_;
  const std::vector<ParsedMessage> messages_;  // always empty: there are none
  const ParserWarnings warnings_;
};

struct AnswerReaderOptions {
  std::vector<std::string> stop;
  bool includes_stop = false;
  // Stop strings are looked for in the text of tokens from this one on, counted from 1.
  int64_t min_tokens = 0;
};

// Stop strings match anywhere in the answer's text, across tokens, within one message; not in
// reasoning nor in calls. Two readers of the same ids do the same: one serves the client, another
// tells the engine where to stop.
class AnswerReader {
 public:
  AnswerReader(std::unique_ptr<StreamParser> parser, AnswerReaderOptions options);

  // Nothing more comes after a stop.
  void push(int32_t id, std::vector<Delta>& out);
  void finish(std::vector<Delta>& out);

  bool stopped() const { return stops_.stopped(); }
  const std::string& matched_stop() const { return stops_.matched(); }
  // Whether the latest token is part of the answer's text.
  bool is_latest_answer() const { return is_latest_answer_; }
  int64_t num_tokens() const { return num_tokens_; }
  int64_t num_reasoning_tokens() const { return num_reasoning_tokens_; }
  const StreamParser& parser() const { return *parser_; }

 private:
  void filter(std::vector<Delta>& out);
  void emit(const Delta& like, std::string text, std::vector<Delta>& out);
  void release_held(std::vector<Delta>& out);

  std::unique_ptr<StreamParser> parser_;
  const AnswerReaderOptions options_;
  StopStrings stops_;
  std::vector<Delta> fresh_;     // what the parser said to the latest token
  std::optional<Delta> latest_;  // the answer's latest delta, whose text may be held back
  int64_t num_tokens_ = 0;
  int64_t num_reasoning_tokens_ = 0;
  bool is_latest_answer_ = false;
};

}  // namespace briar
