// Rows ordered by expert; within an expert, by token.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace briar {

struct MoePermutation {
  std::vector<int32_t> row_offsets, row_tokens, row_of;
};

inline MoePermutation moe_permute_ref(std::span<const int32_t> expert_ids, size_t choices,
                                      int32_t num_experts) {
  MoePermutation p;
  p.row_of.resize(expert_ids.size());
  p.row_offsets.push_back(0);
  for (int32_t expert = 0; expert < num_experts; ++expert) {
    for (size_t i = 0; i < expert_ids.size(); ++i) {
      if (expert_ids[i] != expert) continue;
      p.row_of[i] = static_cast<int32_t>(p.row_tokens.size());
      p.row_tokens.push_back(static_cast<int32_t>(i / choices));
    }
    p.row_offsets.push_back(static_cast<int32_t>(p.row_tokens.size()));
  }
  return p;
}

}  // namespace briar
