#include "tokenizer/splitter.h"

#include <utility>

namespace briar {
namespace {

constexpr std::pair<std::string_view, PieceEnd> kByHand[] = {
    {kO200kPattern, piece_end},           {kLlama3Pattern, llama3_piece_end},
    {kQwen2Pattern, qwen2_piece_end},     {kGpt2Pattern, gpt2_piece_end},
    {R"(\p{N})", single_digit_piece_end},
};

}  // namespace

Status Splitter::add_regex(std::string_view pattern) {
  for (const auto& [known, piece_end] : kByHand) {
    if (pattern == known) {
      add(piece_end);
      return Ok{};
    }
  }
  auto regex = RegexSplit::compile(pattern);
  if (!regex) return regex.error();
  steps_.push_back({.piece_end = nullptr, .regex = std::move(*regex)});
  return Ok{};
}

}  // namespace briar
