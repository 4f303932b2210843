// Bump allocation inside one buffer: the workspace of a forward pass, the weights of a model.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "device/device.h"

namespace briar {

// Allocates by advancing an offset; gives everything back at once. The capacity is fixed: running
// over it is our bug, and the message says by how much.
class Arena {
 public:
  Arena(Device& device, int64_t capacity_bytes, const char* purpose);

  // A contiguous tensor, aligned to 64 bytes, contents undefined.
  TensorView tensor(DType dtype, std::initializer_list<int64_t> shape);
  void* bytes(int64_t num_bytes);

  int64_t used_bytes() const { return used_; }
  int64_t peak_bytes() const { return peak_; }
  int64_t capacity_bytes() const { return buffer_.num_bytes(); }

  // Frees what the arena handed out after the scope began.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.used_) {}
    ~Scope() { arena_.used_ = mark_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    int64_t mark_;
  };

  // What tensor() takes from the capacity for this many elements, alignment included.
  static int64_t footprint(DType dtype, int64_t num_elements);

 private:
  Buffer buffer_;
  const char* purpose_;
  int64_t used_ = 0;
  int64_t peak_ = 0;
};

}  // namespace briar
