// The local form of a KvHandle: a name for pages that the engine keeps from eviction.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "briar/engine.h"

namespace briar {

class LocalKvHandle final : public KvHandle {
 public:
  // `let_go` is called once, from whichever thread drops the handle.
  LocalKvHandle(int64_t num_tokens, uint64_t fingerprint, std::function<void()> let_go)
      : num_tokens_(num_tokens), fingerprint_(fingerprint), let_go_(std::move(let_go)) {}
  ~LocalKvHandle() override { let_go_(); }

  int64_t num_tokens() const override { return num_tokens_; }
  uint64_t fingerprint() const override { return fingerprint_; }

 private:
  int64_t num_tokens_;
  uint64_t fingerprint_;
  std::function<void()> let_go_;
};

}  // namespace briar
