// The streaming parser of formats whose structure is markers in one text: ChatML, Llama 3, Mistral.
// It goes by token ids, so a spelling of a marker is never structure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/call_scanner.h"
#include "formats/format.h"
#include "tokenizer/detokenizer.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// The markers of a format, by id; -1 for what it, or the tokenizer, does not have.
struct MarkerRules {
  std::vector<int32_t> stop_ids;  // end a message
  // A header names who speaks: from header_begin to header_end or, without such a marker, to the
  // end of its line.
  int32_t header_begin = -1;
  int32_t header_end = -1;
  // Where headers are missing, these stand around what the user says (Mistral).
  int32_t user_begin = -1;
  int32_t user_end = -1;
  int32_t think_begin = -1;
  int32_t think_end = -1;
  int32_t call_begin = -1;
  int32_t call_end = -1;             // -1: calls go up to the end of the message
  bool has_bare_calls = false;       // an answer that begins with a brace may be a call
  bool begins_in_reasoning = false;  // the prompt ends in think_begin
  bool drops_first_space = false;    // SentencePiece: the space of the answer's first word
};

class MarkerParser final : public StreamParser, private CallSink {
 public:
  MarkerParser(std::shared_ptr<const Tokenizer> tokenizer, MarkerRules rules,
               ParserOptions options);

  void push(int32_t id, std::vector<Delta>& out) override;
  void finish(std::vector<Delta>& out) override;

  const std::vector<ParsedMessage>& messages() const override { return messages_; }
  const ParserWarnings& warnings() const override { return warnings_; }
  bool is_complete() const override { return state_ == State::kBetween && !is_last_lost_; }
  std::optional<Delta::Kind> open_kind() const override;

 private:
  enum class State { kBetween, kHeader, kBody };
  enum class Section { kContent, kReasoning, kCalls };

  void push_between(int32_t id);
  void push_header(int32_t id);
  void push_body(int32_t id);
  bool push_marker(int32_t id);  // false if it is none
  bool is_stop(int32_t id) const;

  void begin_header();
  void begin_body(Role role, Section section);
  void end_body(bool is_empty_kept);
  void begin_section(Section section);
  void end_section(bool is_before_marker);
  void take_text(std::string text);
  void take_content(std::string_view text);

  // One message of what the client gets: a stretch of reasoning or of content, or a call.
  void open_message(Delta::Kind kind);
  void close_message();
  void emit(Delta::Kind kind, std::string_view text);

  void begin_call(std::string_view name) override;
  void add_arguments(std::string_view text) override;
  void end_call() override;
  void add_text(std::string_view text) override;

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const MarkerRules rules_;
  const std::vector<std::string> tool_names_;
  CallScanner scanner_;

  State state_ = State::kBetween;
  Role role_ = Role::kAssistant;  // of the body
  std::string header_;
  Section section_ = Section::kContent;
  bool skips_newlines_ = false;  // at the begin of a section
  bool is_at_begin_ = true;      // of the body: nothing but white space came
  std::string held_;             // white space that may turn out to stand before a marker
  Utf8Stream utf8_;

  bool is_open_ = false;  // open_ is a message
  ParsedMessage open_;
  std::string open_text_;
  size_t num_before_body_ = 0;  // messages before the body at hand
  int num_tool_calls_ = 0;
  bool is_last_lost_ = false;
  std::vector<ParsedMessage> messages_;
  ParserWarnings warnings_;
  std::vector<Delta>* out_ = nullptr;  // of the push() or finish() at hand
};

// The ids of a recorded stream, parsed whole.
Transcript parse_with_markers(std::shared_ptr<const Tokenizer> tokenizer, const MarkerRules& rules,
                              std::span<const int64_t> ids, const TranscriptOptions& options);

}  // namespace briar
