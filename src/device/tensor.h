// TensorView: a typed, shaped, strided view of memory that somebody else owns.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/check.h"
#include "device/dtype.h"

namespace briar {

// Row-major: the last dimension has stride 1; outer strides are in elements and may leave gaps (a
// slice of wider rows). Rank 0 to 4. A default-constructed view is "absent" (data == nullptr, rank
// 0).
class TensorView {
 public:
  static constexpr int kMaxRank = 4;

  TensorView() = default;
  // Contiguous.
  TensorView(void* data, DType dtype, std::initializer_list<int64_t> shape);

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  int64_t size(int axis) const { return shape_[static_cast<size_t>(axis)]; }
  int64_t stride(int axis) const { return strides_[static_cast<size_t>(axis)]; }
  int64_t num_elements() const;
  int64_t num_bytes() const { return dtype_bytes(dtype_, num_elements()); }
  bool is_contiguous() const;
  // True where there is a tensor at all; a tensor with zero elements is present.
  explicit operator bool() const { return rank_ > 0; }

  // Typed pointer to the first element; the type must be the storage type of the dtype.
  template <class T>
  T* ptr() const {
    check_storage(sizeof(T));
    return static_cast<T*>(data_);
  }

  // Rows [begin, end) along the first axis.
  TensorView rows(int64_t begin, int64_t end) const;
  // Columns [begin, end) along the last axis; the row strides stay.
  TensorView columns(int64_t begin, int64_t end) const;
  // The view at `index` of the first axis, one rank lower.
  TensorView at(int64_t index) const;
  // Another shape with as many elements; contiguous views only.
  TensorView reshape(std::initializer_list<int64_t> shape) const;

  // "bf16 [3, 192]"
  std::string describe() const;

 private:
  void check_storage(size_t size) const;
  void set_shape(std::initializer_list<int64_t> shape);
  TensorView offset_by(int64_t elements) const;

  void* data_ = nullptr;
  DType dtype_ = DType::kFp32;
  uint8_t rank_ = 0;
  std::array<int64_t, kMaxRank> shape_{};
  std::array<int64_t, kMaxRank> strides_{};
};

}  // namespace briar
