// OpenAI's streaming Harmony parser, reproduced with its quirks and errors, for conformance tests
// and for `briar format parse --strict-library`. The server uses HarmonyParser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/harmony_header.h"
#include "formats/harmony_tokens.h"
#include "formats/message.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// Reads the text of a header, everything between <|start|> and <|message|>. `role`: known
// beforehand. `rest`: if set, takes the words after the role, unread, joined by one space.
Result<HarmonyHeader> parse_library_header(std::string_view text, std::optional<Role> role,
                                           std::string* rest);

// The library's decoding of a body: a prefix is given out as soon as it is valid, one U+FFFD stands
// for an ill-formed part, and the bytes after that part wait for the next token.
class HarmonyLibraryDecoder {
 public:
  // Takes a token's bytes, nullopt for an unknown id; returns what has been decoded by it.
  std::string push(std::optional<std::string_view> bytes);
  // What the end of the message adds; no delta shows it.
  std::string finish();

 private:
  std::string pending_;
  bool is_poisoned_ = false;  // an unknown id came: nothing of the message decodes any more
};

class HarmonyLibraryParser {
 public:
  enum class State { kExpectStart, kHeader, kContent };

  HarmonyLibraryParser(const Tokenizer& tokenizer, const HarmonyTokens& tokens,
                       std::optional<Role> role, bool is_strict);

  // A failed push leaves the parser usable, as the library's is.
  Status push(int64_t id);
  Status finish();

  const std::vector<Message>& messages() const { return messages_; }

  State state() const { return state_; }
  // Of the open message.
  std::optional<Role> current_role() const;
  HarmonyHeader current_header() const;
  const std::string& current_content() const { return content_; }
  const std::optional<std::string>& last_delta() const { return delta_; }

 private:
  Status push_header(int64_t id);
  Status recover_header();
  void push_content(int64_t id);
  void finish_message();
  std::optional<std::string> token_bytes(int64_t id) const;
  Result<std::string> header_text() const;

  const Tokenizer& tokenizer_;
  const HarmonyTokens tokens_;
  const bool is_strict_;
  State state_;
  std::optional<Role> next_role_;
  std::vector<int64_t> header_ids_;
  HarmonyHeader header_;
  HarmonyLibraryDecoder decoder_;
  std::string content_;
  std::optional<std::string> delta_;
  std::vector<Message> messages_;
};

}  // namespace briar
