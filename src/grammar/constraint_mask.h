// Masks of constraints: the engine's may be wider or narrower than the tokenizer's vocabulary.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace briar {

// Ids beyond `from` are not allowed.
inline void copy_mask(std::span<const uint32_t> from, std::span<uint32_t> to) {
  const size_t size = std::min(from.size(), to.size());
  std::copy_n(from.begin(), size, to.begin());
  std::fill(to.begin() + static_cast<ptrdiff_t>(size), to.end(), 0u);
}

}  // namespace briar
