// Names of KV content: a page's tokens together with all tokens before them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace briar {

// 128 bits of XXH3 under a key that the process draws at its start: two different prefixes get the
// same name with probability 2^-128, and nobody outside can construct two that do.
struct PageKey {
  uint64_t low = 0, high = 0;
  bool operator==(const PageKey&) const = default;
};

struct PageKeyHash {
  size_t operator()(const PageKey& key) const { return key.low; }
};

// The name of what stands before the first token. Sequences with different salts never share pages.
PageKey root_page_key(std::string_view salt);
// The name of a page that follows `previous` and holds `tokens` (all of the page).
PageKey next_page_key(const PageKey& previous, std::span<const int32_t> tokens);

}  // namespace briar
