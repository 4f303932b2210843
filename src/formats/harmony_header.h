// Headers of Harmony messages: what stands between <|start|> and <|message|>.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/harmony_tokens.h"
#include "formats/message.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// What a header says.
struct HarmonyHeader {
  Role role = Role::kAssistant;
  std::optional<std::string> name;
  std::optional<std::string> channel;
  std::optional<std::string> recipient;
  std::optional<std::string> content_type;
};

// The functions that the client declared.
class HarmonyToolNames {
 public:
  explicit HarmonyToolNames(std::vector<std::string> names) : names_(std::move(names)) {}

  // The declared name that a recipient means: with or without "functions." before it, and with the
  // word json or code glued behind it unless that makes a declared name too.
  std::optional<std::string> find(std::string_view recipient) const;

 private:
  std::vector<std::string> names_;
};

// A header read without ever failing.
struct HarmonyHeaderReading {
  HarmonyHeader header;
  // Text that belongs to no header: the body of a message whose <|message|> is missing.
  std::string rest;
  bool has_role = false;     // given, or spelled out
  bool is_repaired = false;  // something was not as the grammar wants it
};

struct HarmonyHeaderInput {
  std::span<const int32_t> ids;
  std::optional<Role> role;  // known beforehand
  bool has_body = true;      // <|message|> followed; else what is not header is `rest`
};

HarmonyHeaderReading read_harmony_header(const HarmonyHeaderInput& input,
                                         const Tokenizer& tokenizer, const HarmonyTokens& tokens,
                                         const HarmonyToolNames& tools);

bool is_harmony_channel(std::string_view name);

}  // namespace briar
