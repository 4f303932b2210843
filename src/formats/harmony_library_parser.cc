#include "formats/harmony_library_parser.h"

#include <fmt/core.h>

#include <limits>
#include <utility>

#include "tokenizer/utf8.h"

namespace briar {
namespace {

// The library's vocabulary: o200k_harmony with every reserved id named after itself, one past the
// model's last id included, and no <|endofprompt|>.
constexpr int64_t kFirstReserved = 200013;
constexpr int64_t kLastReserved = 201088;

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Utf8Fault {
  size_t valid_bytes = 0;
  bool is_incomplete = false;
  size_t length = 0;  // of the ill-formed part
};

std::optional<Utf8Fault> find_fault(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Char character = decode_utf8_char(bytes.data() + at, bytes.data() + bytes.size());
    if (character.form != Utf8Char::Form::kValid) {
      return Utf8Fault{.valid_bytes = at,
                       .is_incomplete = character.form == Utf8Char::Form::kIncomplete,
                       .length = character.length};
    }
    at += character.length;
  }
  return std::nullopt;
}

std::string fault_text(const Utf8Fault& fault) {
  if (fault.is_incomplete) {
    return fmt::format("incomplete utf-8 byte sequence from index {}", fault.valid_bytes);
  }
  return fmt::format("invalid utf-8 sequence of {} bytes from index {}", fault.length,
                     fault.valid_bytes);
}

}  // namespace

std::string HarmonyLibraryDecoder::push(std::optional<std::string_view> bytes) {
  if (!bytes) is_poisoned_ = true;
  if (is_poisoned_) return {};
  pending_ += *bytes;
  const std::optional<Utf8Fault> fault = find_fault(pending_);
  if (!fault) return std::exchange(pending_, {});
  std::string out = pending_.substr(0, fault->valid_bytes);
  size_t consumed = fault->valid_bytes;
  if (!fault->is_incomplete) {
    out += kReplacement;
    consumed += fault->length;
  }
  pending_.erase(0, consumed);
  return out;
}

std::string HarmonyLibraryDecoder::finish() {
  std::string out = is_poisoned_ ? std::string(kReplacement) : lossy_utf8(pending_);
  pending_.clear();
  is_poisoned_ = false;
  return out;
}

HarmonyLibraryParser::HarmonyLibraryParser(const Tokenizer& tokenizer, const HarmonyTokens& tokens,
                                           std::optional<Role> role, bool is_strict)
    : tokenizer_(tokenizer),
      tokens_(tokens),
      is_strict_(is_strict),
      state_(role ? State::kHeader : State::kExpectStart),
      next_role_(role) {}

std::optional<std::string> HarmonyLibraryParser::token_bytes(int64_t id) const {
  if (id >= kFirstReserved && id <= kLastReserved) return fmt::format("<|reserved_{}|>", id);
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) return std::nullopt;
  const auto bytes = tokenizer_.token_bytes(static_cast<int32_t>(id));
  return bytes ? std::optional<std::string>(*bytes) : std::nullopt;
}

Status HarmonyLibraryParser::push(int64_t id) {
  switch (state_) {
    case State::kExpectStart:
      if (id != tokens_.start) {
        return make_error("Unexpected token {} while expecting start token {}", id, tokens_.start);
      }
      state_ = State::kHeader;
      header_ids_.clear();
      return Ok{};
    case State::kHeader: return push_header(id);
    case State::kContent: push_content(id); return Ok{};
  }
  CHECK(false, "state {} is none of the parser's", static_cast<int>(state_));
  return Ok{};
}

Status HarmonyLibraryParser::finish() {
  if (state_ == State::kHeader) {
    return make_error("Unexpected EOS while waiting for message header to complete");
  }
  if (state_ == State::kContent) finish_message();
  return Ok{};
}

Result<std::string> HarmonyLibraryParser::header_text() const {
  std::string text;
  for (const int64_t id : header_ids_) {
    const auto bytes = token_bytes(id);
    if (!bytes) return make_error("Invalid token for decoding: {}", id);
    text += *bytes;
  }
  if (const auto fault = find_fault(text)) {
    return make_error("Invalid utf-8 sequence: {}", fault_text(*fault));
  }
  return text;
}

Status HarmonyLibraryParser::push_header(int64_t id) {
  if (id != tokens_.message) {
    if (tokens_.is_stop(id) && !is_strict_) return recover_header();
    header_ids_.push_back(id);
    return Ok{};
  }
  state_ = State::kExpectStart;
  const auto text = header_text();
  if (!text) return make_error("could not decode header");
  auto header = parse_library_header(*text, next_role_, nullptr);
  if (!header) return header.error();
  header_ = std::move(*header);
  next_role_.reset();
  content_.clear();
  delta_.reset();
  state_ = State::kContent;
  return Ok{};
}

// The library's repair of text without a <|message|>: only for the very first message.
Status HarmonyLibraryParser::recover_header() {
  state_ = State::kExpectStart;
  if (!next_role_ || header_ids_.empty()) return Ok{};
  const auto text = header_text();
  if (!text) return make_error("Could not decode tokens: {}", text.error().message);
  std::string body;
  auto header = parse_library_header(*text, next_role_, &body);
  if (!header) return header.error();
  header_ = std::move(*header);
  next_role_.reset();
  content_ = std::move(body);
  finish_message();
  return Ok{};
}

void HarmonyLibraryParser::push_content(int64_t id) {
  if (tokens_.is_stop(id)) {
    finish_message();
    return;
  }
  const auto bytes = token_bytes(id);
  std::string text = decoder_.push(bytes ? std::optional<std::string_view>(*bytes) : std::nullopt);
  content_ += text;
  delta_ = text.empty() ? std::nullopt : std::optional(std::move(text));
}

void HarmonyLibraryParser::finish_message() {
  content_ += decoder_.finish();
  Message message = text_message(header_.role, std::exchange(content_, {}));
  message.name = std::move(header_.name);
  message.recipient = std::move(header_.recipient);
  message.channel = std::move(header_.channel);
  message.content_type = std::move(header_.content_type);
  messages_.push_back(std::move(message));
  header_ = {};
  delta_.reset();
  state_ = State::kExpectStart;
}

std::optional<Role> HarmonyLibraryParser::current_role() const {
  return state_ == State::kContent ? std::optional(header_.role) : next_role_;
}

HarmonyHeader HarmonyLibraryParser::current_header() const {
  return state_ == State::kContent ? header_ : HarmonyHeader{};
}

}  // namespace briar
