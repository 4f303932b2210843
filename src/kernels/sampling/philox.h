// Counter-based random numbers: Philox4x32-10, Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cstdint>

namespace briar {

// What a random number is for; numbers of different purposes are independent.
enum class RandomPurpose : uint32_t { kSample = 0, kDraft = 1, kAccept = 2, kResample = 3 };

// Everything that a random number depends on. Neither the batch, nor the step, nor the device is in
// it: a request's tokens are the same in any company.
struct RandomKey {
  uint64_t seed = 0;
  uint32_t choice = 0;    // index among the n choices of a request
  uint32_t position = 0;  // position of the token to be drawn in its sequence
  RandomPurpose purpose = RandomPurpose::kSample;
};

constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// Uniform in [0, 1) with 53 bits.
constexpr double uniform(const RandomKey& k) {
  const auto r = philox4x32({k.position, k.choice, static_cast<uint32_t>(k.purpose), 0},
                            {static_cast<uint32_t>(k.seed), static_cast<uint32_t>(k.seed >> 32)});
  return static_cast<double>((uint64_t{r[0]} << 21) ^ (uint64_t{r[1]} >> 11)) * 0x1.0p-53;
}

}  // namespace briar
