// out[i] = table[token_ids[i]]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace briar {

inline std::vector<double> embedding_ref(std::span<const int32_t> ids, std::span<const float> table,
                                         int64_t hidden_size) {
  std::vector<double> out;
  for (const int32_t id : ids) {
    for (int64_t i = 0; i < hidden_size; ++i) {
      out.push_back(table[static_cast<size_t>(id * hidden_size + i)]);
    }
  }
  return out;
}

}  // namespace briar
