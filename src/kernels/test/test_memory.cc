#include "kernels/test/test_memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <new>

#include "kernels/test/test_target.h"

#ifdef BRIAR_CUDA
#include <cuda_runtime_api.h>
#endif

namespace briar {
namespace {

// Pinning memory takes milliseconds: blocks are kept, by size.
std::map<size_t, std::vector<void*>>& kept_blocks() {
  static std::map<size_t, std::vector<void*>> kept;
  return kept;
}

size_t block_bytes(size_t num_bytes) { return std::bit_ceil(std::max<size_t>(num_bytes, 4096)); }

void* allocate_block(size_t num_bytes) {
#ifdef BRIAR_CUDA
  if (has_test_gpu()) {
    void* data = nullptr;
    if (cudaMallocHost(&data, num_bytes) != cudaSuccess) throw std::bad_alloc();
    return data;
  }
#endif
  void* data = std::aligned_alloc(4096, num_bytes);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

void* allocate_test_memory(size_t num_bytes) {
  std::vector<void*>& kept = kept_blocks()[block_bytes(num_bytes)];
  if (kept.empty()) return allocate_block(block_bytes(num_bytes));
  void* data = kept.back();
  kept.pop_back();
  return data;
}

void free_test_memory(void* data, size_t num_bytes) noexcept {
  kept_blocks()[block_bytes(num_bytes)].push_back(data);
}

}  // namespace briar
