// The special tokens that give Harmony its structure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace briar {

inline constexpr std::string_view kHarmonyStartText = "<|start|>";
inline constexpr std::string_view kHarmonyChannelText = "<|channel|>";
inline constexpr std::string_view kHarmonyConstrainText = "<|constrain|>";

struct HarmonyTokens {
  int32_t start = -1;
  int32_t end = -1;
  int32_t message = -1;
  int32_t channel = -1;
  int32_t constrain = -1;
  int32_t return_ = -1;
  int32_t call = -1;
  int32_t end_of_text = -1;  // ends a stream, not a message; -1 if the tokenizer has none

  // Ends a message: of the history, of the answer, or of a tool call.
  bool is_stop(int64_t id) const { return id == end || id == return_ || id == call; }

  static Result<HarmonyTokens> find(const Tokenizer& tokenizer);
};

}  // namespace briar
