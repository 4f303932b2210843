#include "kvcache/page_key.h"

#include <random>

#define XXH_STATIC_LINKING_ONLY  // the state on the stack
#include <xxhash.h>

namespace briar {
namespace {

uint64_t process_seed() {
  static const uint64_t seed = [] {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
  }();
  return seed;
}

PageKey hash(uint64_t seed, const void* data, size_t num_bytes) {
  const XXH128_hash_t h = XXH3_128bits_withSeed(data, num_bytes, seed);
  return {h.low64, h.high64};
}

}  // namespace

PageKey root_page_key(std::string_view salt) {
  return hash(process_seed(), salt.data(), salt.size());
}

PageKey next_page_key(const PageKey& previous, std::span<const int32_t> tokens) {
  XXH3_state_t state;
  XXH3_128bits_reset_withSeed(&state, process_seed());
  XXH3_128bits_update(&state, &previous, sizeof(previous));
  XXH3_128bits_update(&state, tokens.data(), tokens.size_bytes());
  const XXH128_hash_t h = XXH3_128bits_digest(&state);
  return {h.low64, h.high64};
}

}  // namespace briar
