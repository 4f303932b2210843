#include "formats/marker_parser.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace briar {
namespace {

// "assistant" and its like are short; a longer header is an answer whose header is broken.
constexpr size_t kMaxHeaderSize = 64;

std::string_view without_leading_newlines(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  const size_t end = text.find_last_not_of(kSpace);
  return end == text.npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

}  // namespace

MarkerParser::MarkerParser(std::shared_ptr<const Tokenizer> tokenizer, MarkerRules rules,
                           ParserOptions options)
    : tokenizer_(std::move(tokenizer)),
      rules_(std::move(rules)),
      tool_names_(std::move(options.tool_names)),
      scanner_(tool_names_, *this) {
  if (!options.role) return;
  const bool is_new_answer = *options.role == Role::kAssistant && !options.is_in_answer;
  const bool is_reasoning = rules_.begins_in_reasoning && is_new_answer;
  begin_body(*options.role, is_reasoning ? Section::kReasoning : Section::kContent);
  if (options.is_in_answer) is_at_begin_ = false;
}

std::optional<Delta::Kind> MarkerParser::open_kind() const {
  if (state_ != State::kBody) return std::nullopt;
  if (role_ != Role::kAssistant) return Delta::Kind::kContent;
  switch (section_) {
    case Section::kReasoning: return Delta::Kind::kReasoning;
    case Section::kCalls: return Delta::Kind::kToolCall;
    case Section::kContent: break;
  }
  return Delta::Kind::kContent;
}

void MarkerParser::push(int32_t id, std::vector<Delta>& out) {
  out_ = &out;
  switch (state_) {
    case State::kBetween: push_between(id); break;
    case State::kHeader: push_header(id); break;
    case State::kBody: push_body(id); break;
  }
  out_ = nullptr;
}

void MarkerParser::finish(std::vector<Delta>& out) {
  if (state_ == State::kBetween) return;
  out_ = &out;
  if (state_ == State::kBody) end_body(true);
  state_ = State::kBetween;
  is_last_lost_ = true;
  out_ = nullptr;
}

bool MarkerParser::is_stop(int32_t id) const {
  return std::find(rules_.stop_ids.begin(), rules_.stop_ids.end(), id) != rules_.stop_ids.end();
}

void MarkerParser::push_between(int32_t id) {
  if (id >= 0 && id == rules_.header_begin) return begin_header();
  if (id >= 0 && id == rules_.user_begin) return begin_body(Role::kUser, Section::kContent);
  if (id >= 0 && id == rules_.user_end) return begin_body(Role::kAssistant, Section::kContent);
  const bool is_silent = is_stop(id) || id == tokenizer_->bos_id() ||
                         trimmed(tokenizer_->token_bytes(id).value_or("?")).empty();
  if (!is_silent) ++warnings_.skipped_tokens;
}

void MarkerParser::push_header(int32_t id) {
  if (id >= 0 && id == rules_.header_begin) return begin_header();
  const bool is_end_marker = id >= 0 && id == rules_.header_end;
  if (is_stop(id)) {
    is_last_lost_ = true;
    state_ = State::kBetween;
    return;
  }
  if (!is_end_marker) header_ += tokenizer_->token_bytes(id).value_or("");
  const size_t line_end = header_.find('\n');
  const bool has_ended = is_end_marker || (rules_.header_end < 0 && line_end != std::string::npos);
  if (!has_ended && header_.size() <= kMaxHeaderSize) return;
  const std::string_view word =
      trimmed(std::string_view(header_).substr(0, is_end_marker ? header_.npos : line_end));
  const auto role = word == "ipython" ? std::optional(Role::kTool) : role_from_word(word);
  std::string rest;
  if (!role) {
    ++warnings_.repaired_headers;
    rest = header_;
  } else if (!is_end_marker && has_ended) {
    rest = header_.substr(line_end + 1);
  }
  begin_body(role.value_or(Role::kAssistant), Section::kContent);
  skips_newlines_ = is_end_marker;  // Llama 3 has an empty line there
  if (!rest.empty()) take_text(utf8_.push(rest));
}

void MarkerParser::push_body(int32_t id) {
  if (is_stop(id)) {
    end_body(true);
    state_ = State::kBetween;
  } else if (!push_marker(id)) {
    const auto bytes = tokenizer_->token_bytes(id);
    if (!bytes || tokenizer_->is_special(id)) {
      ++warnings_.skipped_tokens;
    } else {
      take_text(utf8_.push(*bytes));
    }
  }
}

bool MarkerParser::push_marker(int32_t id) {
  if (id < 0) return false;
  if (id == rules_.header_begin) {
    ++warnings_.repaired_headers;
    end_body(false);
    begin_header();
  } else if (id == rules_.user_begin || id == rules_.user_end) {
    const Role next = id == rules_.user_begin ? Role::kUser : Role::kAssistant;
    if (role_ == next) ++warnings_.repaired_headers;
    end_body(role_ == Role::kUser);
    begin_body(next, Section::kContent);
  } else if (role_ != Role::kAssistant) {
    return false;
  } else if (id == rules_.think_begin) {
    begin_section(Section::kReasoning);
  } else if (id == rules_.think_end) {
    if (section_ != Section::kReasoning) ++warnings_.repaired_headers;
    begin_section(Section::kContent);
  } else if (id == rules_.call_begin) {
    begin_section(Section::kCalls);
  } else if (id == rules_.call_end) {
    if (section_ != Section::kCalls) ++warnings_.repaired_headers;
    begin_section(Section::kContent);
  } else {
    return false;
  }
  return true;
}

void MarkerParser::begin_header() {
  header_.clear();
  state_ = State::kHeader;
}

void MarkerParser::begin_body(Role role, Section section) {
  state_ = State::kBody;
  role_ = role;
  section_ = section;
  skips_newlines_ = section == Section::kReasoning;
  is_at_begin_ = true;
  num_before_body_ = messages_.size();
}

// An answer without a single character is a message too; an opening that is only said twice is
// none.
void MarkerParser::end_body(bool is_empty_kept) {
  end_section(false);
  if (is_empty_kept && messages_.size() == num_before_body_) {
    open_message(Delta::Kind::kContent);
    close_message();
  }
  is_last_lost_ = false;
}

void MarkerParser::begin_section(Section section) {
  end_section(true);
  skips_newlines_ = section != Section::kContent || section_ != Section::kContent;
  section_ = section;
  is_at_begin_ = false;
}

// Line breaks at the end of reasoning, and before a marker, are the template's.
void MarkerParser::end_section(bool is_before_marker) {
  take_text(utf8_.finish());
  if (section_ == Section::kCalls) {
    scanner_.finish();
  } else if (section_ == Section::kContent && !is_before_marker && !held_.empty()) {
    emit(Delta::Kind::kContent, std::exchange(held_, {}));
  }
  held_.clear();
  close_message();
}

void MarkerParser::take_text(std::string text) {
  std::string_view rest = text;
  if (skips_newlines_ && section_ != Section::kCalls) {
    rest = without_leading_newlines(rest);
    if (rest.empty()) return;
    skips_newlines_ = false;
  }
  if (rest.empty()) return;
  if (section_ == Section::kCalls) return scanner_.push(rest);
  if (section_ == Section::kContent && is_at_begin_) return take_content(rest);
  const size_t end = rest.find_last_not_of('\n') + 1;  // npos + 1 is 0
  if (end == 0) {
    held_ += rest;
    return;
  }
  const auto kind =
      section_ == Section::kReasoning ? Delta::Kind::kReasoning : Delta::Kind::kContent;
  const std::string before = std::exchange(held_, std::string(rest.substr(end)));
  emit(kind, before + std::string(rest.substr(0, end)));
}

// The begin of an answer: perhaps a call without a marker.
void MarkerParser::take_content(std::string_view text) {
  const bool is_answer = role_ == Role::kAssistant;
  const bool may_call = rules_.has_bare_calls && !tool_names_.empty() && is_answer;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (may_call && first == text.npos) {
    held_ += text;
    return;
  }
  is_at_begin_ = false;
  if (rules_.drops_first_space && is_answer && text.starts_with(' ')) text.remove_prefix(1);
  const std::string begin = std::exchange(held_, {}) + std::string(text);
  if (!may_call || text[first] != '{') return take_text(begin);
  section_ = Section::kCalls;
  scanner_.push(begin);
}

void MarkerParser::open_message(Delta::Kind kind) {
  close_message();
  open_ = {};
  open_.kind = kind;
  open_text_.clear();
  is_open_ = true;
}

void MarkerParser::close_message() {
  if (!is_open_) return;
  is_open_ = false;
  std::string text = std::exchange(open_text_, {});
  switch (open_.kind) {
    case Delta::Kind::kToolCall:
      open_.message = tool_call_message(open_.tool_name, std::move(text));
      break;
    case Delta::Kind::kReasoning: open_.message = reasoning_message(std::move(text)); break;
    case Delta::Kind::kContent:
      open_.message = role_ == Role::kAssistant ? answer_message(std::move(text))
                                                : text_message(role_, std::move(text));
  }
  messages_.push_back(std::move(open_));
}

void MarkerParser::emit(Delta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (role_ != Role::kAssistant) kind = Delta::Kind::kContent;
  if (!is_open_ || open_.kind != kind) open_message(kind);
  open_text_ += text;
  out_->push_back({.kind = kind,
                   .message_idx = static_cast<int>(messages_.size()),
                   .tool_call_idx = open_.tool_call_idx,
                   .tool_name = {},
                   .text = std::string(text)});
}

void MarkerParser::begin_call(std::string_view name) {
  open_message(Delta::Kind::kToolCall);
  open_.tool_name = std::string(name);
  open_.tool_call_idx = num_tool_calls_++;
  out_->push_back({.kind = open_.kind,
                   .message_idx = static_cast<int>(messages_.size()),
                   .tool_call_idx = open_.tool_call_idx,
                   .tool_name = open_.tool_name,
                   .text = {}});
}

void MarkerParser::add_arguments(std::string_view text) { emit(Delta::Kind::kToolCall, text); }

void MarkerParser::end_call() { close_message(); }

void MarkerParser::add_text(std::string_view text) { emit(Delta::Kind::kContent, text); }

Transcript parse_with_markers(std::shared_ptr<const Tokenizer> tokenizer, const MarkerRules& rules,
                              std::span<const int64_t> ids, const TranscriptOptions& options) {
  MarkerParser parser(std::move(tokenizer), rules,
                      ParserOptions{.role = options.role, .tool_names = {}});
  std::vector<Delta> deltas;
  for (const int64_t id : ids) {
    const bool fits = id >= 0 && id <= std::numeric_limits<int32_t>::max();
    parser.push(fits ? static_cast<int32_t>(id) : -1, deltas);
  }
  if (options.has_end) parser.finish(deltas);
  Transcript transcript;
  for (const ParsedMessage& parsed : parser.messages()) {
    transcript.messages.push_back(parsed.message);
  }
  return transcript;
}

}  // namespace briar
