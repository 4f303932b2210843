// Up to 15 bytes as one value that is compared and hashed without a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace briar {

inline constexpr size_t kMaxShortKey = 15;

// The bytes, padded with zeros, and in the last byte their number; so an empty key is that of no
// bytes.
struct ShortKey {
  uint64_t low = 0;
  uint64_t high = 0;

  bool operator==(const ShortKey&) const = default;
  bool is_empty() const { return high == 0; }
};

// The key of the 1 to 15 bytes at `p`. The memory up to `readable_end` may be read.
inline ShortKey load_short_key(const char* p, size_t size, const char* readable_end) {
  ShortKey key;
  if (readable_end - p >= 16) [[likely]] {
    std::memcpy(&key, p, 16);
    // Clears the bytes from `size` on. A shift by 64 is undefined, hence the special case.
    const unsigned high_bits = size <= 8 ? 0 : 8 * static_cast<unsigned>(size) - 64;
    if (size < 8) key.low &= (uint64_t{1} << 8 * size) - 1;
    key.high &= (uint64_t{1} << high_bits) - 1;
  } else {
    std::memcpy(&key, p, size);
  }
  key.high |= static_cast<uint64_t>(size) << 56;
  return key;
}

// Multiplies and folds, as wyhash does; the constants are odd with about as many ones as zeros.
inline uint64_t hash_of(ShortKey key) {
  const auto product = static_cast<unsigned __int128>(key.low ^ 0x9E3779B97F4A7C15u) *
                       (key.high ^ 0xD6E8FEB86659FD93u);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace briar
