#include "formats/harmony_parser.h"

#include <utility>

namespace briar {
namespace {

// The longest sensible header, a tool name of 64 single-byte tokens included, is shorter than this:
// a longer one is an answer without a header and need not wait for its end.
constexpr size_t kMaxHeaderTokens = 128;

Delta::Kind kind_of(const HarmonyHeader& header) {
  if (header.role != Role::kAssistant) return Delta::Kind::kContent;
  const std::string recipient = header.recipient.value_or("");
  const bool is_for_client =
      recipient.empty() || recipient == "assistant" || recipient == "all" || recipient == "user";
  // A recipient that nobody serves: the client is the only one left to read it.
  if (!is_for_client) return Delta::Kind::kContent;
  const bool is_content =
      !header.channel || header.channel == "final" || header.channel == "commentary";
  return is_content ? Delta::Kind::kContent : Delta::Kind::kReasoning;
}

// A stream cut within " to=" leaves a beginning that is no text.
bool is_cut_recipient(std::string_view rest) { return rest == "t" || rest == "to"; }

}  // namespace

HarmonyParser::HarmonyParser(std::shared_ptr<const Tokenizer> tokenizer,
                             const HarmonyTokens& tokens, ParserOptions options)
    : tokenizer_(std::move(tokenizer)), tokens_(tokens), tools_(std::move(options.tool_names)) {
  if (options.is_in_answer) {
    HarmonyHeader header;
    header.channel = "final";
    std::vector<Delta> none;  // opening an answer says nothing
    open_body(std::move(header), none);
  } else if (options.role) {
    begin_header(options.role);
  }
}

void HarmonyParser::push(int32_t id, std::vector<Delta>& out) {
  switch (state_) {
    case State::kBetween: push_between(id, out); break;
    case State::kHeader: push_header(id, out); break;
    case State::kBody: push_body(id, out); break;
  }
}

void HarmonyParser::finish(std::vector<Delta>& out) {
  if (state_ == State::kBetween) return;
  if (state_ == State::kBody) {
    close_body(out);
  } else {
    HarmonyHeaderReading reading = read_header(false);
    // Without a role the words may be the name of whoever was to speak.
    if (reading.has_role && !reading.rest.empty() && !is_cut_recipient(reading.rest)) {
      open_body(std::move(reading.header), out);
      emit(std::move(reading.rest), out);
      close_body(out);
    }
  }
  state_ = State::kBetween;
  is_last_lost_ = true;
}

bool HarmonyParser::ends_message(int32_t id) const {
  return tokens_.is_stop(id) || (id >= 0 && id == tokens_.end_of_text);
}

void HarmonyParser::push_between(int32_t id, std::vector<Delta>& out) {
  if (id == tokens_.start) {
    begin_header(std::nullopt);
  } else if (id == tokens_.channel) {
    ++warnings_.repaired_headers;
    begin_header(Role::kAssistant);
    header_ids_.push_back(id);
  } else if (id == tokens_.message) {
    ++warnings_.repaired_headers;
    open_body({}, out);
  } else if (!ends_message(id)) {
    ++warnings_.skipped_tokens;
  }
}

void HarmonyParser::push_header(int32_t id, std::vector<Delta>& out) {
  if (id == tokens_.message) {
    HarmonyHeaderReading reading = read_header(true);
    if (reading.is_repaired) ++warnings_.repaired_headers;
    open_body(std::move(reading.header), out);
  } else if (id == tokens_.start) {
    close_header(out);
    begin_header(std::nullopt);
  } else if (ends_message(id)) {
    close_header(out);
  } else {
    header_ids_.push_back(id);
    if (header_ids_.size() < kMaxHeaderTokens) return;
    ++warnings_.repaired_headers;
    HarmonyHeaderReading reading = read_header(false);
    open_body(std::move(reading.header), out);
    emit(std::move(reading.rest), out);
  }
}

void HarmonyParser::push_body(int32_t id, std::vector<Delta>& out) {
  if (ends_message(id)) {
    close_body(out);
  } else if (id == tokens_.start) {
    ++warnings_.repaired_headers;
    close_body(out);
    begin_header(std::nullopt);
  } else if (id == tokens_.channel) {
    ++warnings_.repaired_headers;
    const Role role = open_.message.role;
    close_body(out);
    begin_header(role);
    header_ids_.push_back(id);
  } else {
    const auto bytes = tokenizer_->token_bytes(id);
    if (!bytes || tokenizer_->is_special(id)) {
      ++warnings_.skipped_tokens;
    } else {
      emit(utf8_.push(*bytes), out);
    }
  }
}

void HarmonyParser::begin_header(std::optional<Role> role) {
  header_role_ = role;
  header_ids_.clear();
  state_ = State::kHeader;
}

HarmonyHeaderReading HarmonyParser::read_header(bool has_body) {
  return read_harmony_header({.ids = header_ids_, .role = header_role_, .has_body = has_body},
                             *tokenizer_, tokens_, tools_);
}

void HarmonyParser::open_body(HarmonyHeader header, std::vector<Delta>& out) {
  open_ = {};
  open_.kind = kind_of(header);
  if (header.role == Role::kAssistant && header.recipient) {
    if (auto tool = tools_.find(*header.recipient)) {
      open_.kind = Delta::Kind::kToolCall;
      open_.tool_name = std::move(*tool);
      open_.tool_call_idx = num_tool_calls_++;
    }
  }
  open_.message.role = header.role;
  open_.message.name = std::move(header.name);
  open_.message.recipient = std::move(header.recipient);
  open_.message.channel = std::move(header.channel);
  open_.message.content_type = std::move(header.content_type);
  body_.clear();
  state_ = State::kBody;
  if (open_.kind != Delta::Kind::kToolCall) return;
  out.push_back({.kind = open_.kind,
                 .message_idx = static_cast<int>(messages_.size()),
                 .tool_call_idx = open_.tool_call_idx,
                 .tool_name = open_.tool_name,
                 .text = {}});
}

void HarmonyParser::close_header(std::vector<Delta>& out) {
  HarmonyHeaderReading reading = read_header(false);
  if (reading.rest.empty()) {
    is_last_lost_ = true;
    state_ = State::kBetween;
    return;
  }
  ++warnings_.repaired_headers;
  open_body(std::move(reading.header), out);
  emit(std::move(reading.rest), out);
  close_body(out);
}

void HarmonyParser::close_body(std::vector<Delta>& out) {
  emit(utf8_.finish(), out);
  open_.message.content.push_back(TextContent{std::exchange(body_, {})});
  messages_.push_back(std::move(open_));
  is_last_lost_ = false;
  state_ = State::kBetween;
}

void HarmonyParser::emit(std::string text, std::vector<Delta>& out) {
  if (text.empty()) return;
  body_ += text;
  out.push_back({.kind = open_.kind,
                 .message_idx = static_cast<int>(messages_.size()),
                 .tool_call_idx = open_.tool_call_idx,
                 .tool_name = {},
                 .text = std::move(text)});
}

}  // namespace briar
