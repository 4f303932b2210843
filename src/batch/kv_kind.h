// The two kinds of attention layers that hold their KV differently.
#pragma once

#include <cstdint>

namespace briar {

// kFull keeps every token; kWindow keeps the last `window` tokens, and pages that fall out of it go
// back to the pool. Each kind has a page table and a pool of its own.
enum class KvKind : uint8_t { kFull = 0, kWindow = 1 };
inline constexpr int kNumKvKinds = 2;

inline const char* to_string(KvKind kind) { return kind == KvKind::kFull ? "full" : "window"; }

}  // namespace briar
