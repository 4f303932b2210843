// Memory of test tensors. In CUDA builds on a machine with a GPU it is pinned and mapped: kernels
// of both devices take the same pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace briar {

void* allocate_test_memory(size_t num_bytes);
void free_test_memory(void* data, size_t num_bytes) noexcept;

template <class T>
struct TestAllocator {
  using value_type = T;
  TestAllocator() = default;
  template <class U>
  TestAllocator(const TestAllocator<U>&) {}  // NOLINT: allocators convert
  T* allocate(size_t n) { return static_cast<T*>(allocate_test_memory(n * sizeof(T))); }
  void deallocate(T* data, size_t n) noexcept { free_test_memory(data, n * sizeof(T)); }
  bool operator==(const TestAllocator&) const { return true; }
};

template <class T>
using TestVector = std::vector<T, TestAllocator<T>>;

}  // namespace briar
