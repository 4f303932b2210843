// Harmony's streaming parser for what models really emit. It goes by token ids, not by text, so a
// user's or a model's spelling of a marker is never structure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/format.h"
#include "formats/harmony_header.h"
#include "formats/harmony_tokens.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"

namespace briar {

class HarmonyParser final : public StreamParser {
 public:
  HarmonyParser(std::shared_ptr<const Tokenizer> tokenizer, const HarmonyTokens& tokens,
                ParserOptions options);

  void push(int32_t id, std::vector<Delta>& out) override;
  void finish(std::vector<Delta>& out) override;

  const std::vector<ParsedMessage>& messages() const override { return messages_; }
  const ParserWarnings& warnings() const override { return warnings_; }
  bool is_complete() const override { return state_ == State::kBetween && !is_last_lost_; }
  std::optional<Delta::Kind> open_kind() const override {
    return state_ == State::kBody ? std::optional(open_.kind) : std::nullopt;
  }

 private:
  enum class State { kBetween, kHeader, kBody };

  void push_between(int32_t id, std::vector<Delta>& out);
  void push_header(int32_t id, std::vector<Delta>& out);
  void push_body(int32_t id, std::vector<Delta>& out);

  void begin_header(std::optional<Role> role);
  HarmonyHeaderReading read_header(bool has_body);
  void open_body(HarmonyHeader header, std::vector<Delta>& out);
  // A header that no <|message|> follows: what is left of its words is the body.
  void close_header(std::vector<Delta>& out);
  void close_body(std::vector<Delta>& out);
  void emit(std::string text, std::vector<Delta>& out);
  bool ends_message(int32_t id) const;

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const HarmonyTokens tokens_;
  const HarmonyToolNames tools_;

  State state_ = State::kBetween;
  std::optional<Role> header_role_;
  std::vector<int32_t> header_ids_;
  ParsedMessage open_;  // while in kBody
  std::string body_;    // its text so far
  Utf8Stream utf8_;
  int num_tool_calls_ = 0;
  bool is_last_lost_ = false;  // the last message that was begun came to nothing
  std::vector<ParsedMessage> messages_;
  ParserWarnings warnings_;
};

}  // namespace briar
