#include "device/tensor.h"

#include <fmt/format.h>

namespace briar {

const char* to_string(DType dtype) {
  constexpr const char* kNames[] = {"fp32", "bf16", "fp8_e4m3", "mxfp4", "int32", "uint8"};
  return kNames[static_cast<size_t>(dtype)];
}

TensorView::TensorView(void* data, DType dtype, std::initializer_list<int64_t> shape)
    : data_(data), dtype_(dtype) {
  set_shape(shape);
}

void TensorView::set_shape(std::initializer_list<int64_t> shape) {
  CHECK_LE(static_cast<int>(shape.size()), kMaxRank, "tensors have at most {} dimensions",
           kMaxRank);
  rank_ = static_cast<uint8_t>(shape.size());
  size_t axis = 0;
  for (const int64_t size : shape) {
    CHECK_GE(size, 0, "size of axis {}", axis);
    shape_[axis++] = size;
  }
  int64_t stride = 1;
  for (size_t i = rank_; i-- > 0;) {
    strides_[i] = stride;
    stride *= shape_[i];
  }
}

int64_t TensorView::num_elements() const {
  if (rank_ == 0) return 0;
  int64_t count = 1;
  for (int i = 0; i < rank_; ++i) count *= size(i);
  return count;
}

bool TensorView::is_contiguous() const {
  int64_t expected = 1;
  for (int i = rank_ - 1; i >= 0; --i) {
    if (size(i) != 1 && stride(i) != expected) return false;
    expected *= size(i);
  }
  return true;
}

void TensorView::check_storage(size_t size) const {
  const size_t expected = dtype_ == DType::kMxfp4 ? 1 : static_cast<size_t>(dtype_bytes(dtype_, 1));
  CHECK_EQ(size, expected, "{} read through a pointer to {}-byte elements", describe(), size);
}

TensorView TensorView::offset_by(int64_t elements) const {
  TensorView out = *this;
  if (data_ != nullptr) out.data_ = static_cast<char*>(data_) + dtype_bytes(dtype_, elements);
  return out;
}

TensorView TensorView::rows(int64_t begin, int64_t end) const {
  CHECK_GT(rank(), 0, "rows() of {}", describe());
  CHECK(0 <= begin && begin <= end && end <= size(0), "rows [{}, {}) of {}", begin, end,
        describe());
  TensorView out = offset_by(begin * stride(0));
  out.shape_[0] = end - begin;
  return out;
}

TensorView TensorView::columns(int64_t begin, int64_t end) const {
  CHECK_GT(rank(), 0, "columns() of {}", describe());
  const int last = rank() - 1;
  CHECK(0 <= begin && begin <= end && end <= size(last), "columns [{}, {}) of {}", begin, end,
        describe());
  TensorView out = offset_by(begin);
  out.shape_[static_cast<size_t>(last)] = end - begin;
  return out;
}

TensorView TensorView::at(int64_t index) const {
  CHECK_GT(rank(), 1, "at() of {}", describe());
  CHECK(0 <= index && index < size(0), "index {} of {}", index, describe());
  TensorView out = offset_by(index * stride(0));
  out.rank_ = static_cast<uint8_t>(rank_ - 1);
  for (size_t i = 0; i < out.rank_; ++i) {
    out.shape_[i] = shape_[i + 1];
    out.strides_[i] = strides_[i + 1];
  }
  return out;
}

TensorView TensorView::reshape(std::initializer_list<int64_t> shape) const {
  CHECK(is_contiguous(), "reshape() of {}, which is not contiguous", describe());
  TensorView out = *this;
  out.set_shape(shape);
  CHECK_EQ(out.num_elements(), num_elements(), "reshape of {} to {}", describe(), out.describe());
  return out;
}

std::string TensorView::describe() const {
  if (rank_ == 0) return "absent tensor";
  std::string dims;
  for (int i = 0; i < rank(); ++i) dims += fmt::format("{}{}", i == 0 ? "" : ", ", size(i));
  return fmt::format("{} [{}]", to_string(dtype_), dims);
}

}  // namespace briar
