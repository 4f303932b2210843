// Tensors for kernel tests. Around the elements, and between the rows of strided ones, lie bytes
// 0xff: a NaN or -1 to whoever reads them, and checked after the kernel has written.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "device/tensor.h"
#include "kernels/test/test_memory.h"

namespace briar {

class TestTensor {
 public:
  // With a gap the rows lie `gap` elements apart and the first one is offset by an element.
  TestTensor(DType dtype, std::vector<int64_t> shape, int64_t gap = 0)
      : last_(shape.back()), gap_(gap), element_bytes_(static_cast<size_t>(dtype_bytes(dtype, 1))) {
    for (size_t i = 0; i + 1 < shape.size(); ++i) rows_ *= shape[i];
    shape.back() += gap;
    bytes_ = std::make_unique<TestBytes>(2 * kGuard + static_cast<size_t>(rows_ * (last_ + gap)) *
                                                          element_bytes_);
    const int64_t lead = gap > 0 ? 1 : 0;
    view_ = contiguous(static_cast<uint8_t*>(bytes_->kernel_data()) + kGuard, dtype, shape)
                .columns(lead, lead + last_);
  }
  TestTensor(TestTensor&&) = default;  // the bytes stay where they are

  const TensorView& view() const { return view_; }
  int64_t size() const { return rows_ * last_; }
  int64_t num_rows() const { return rows_; }

  // Elements by their row-major number.
  float get(int64_t i) const {
    switch (view_.dtype()) {
      case DType::kFp32: return load<float>(i);
      case DType::kBf16: return to_float(load<Bf16>(i));
      default: return static_cast<float>(get_int(i));
    }
  }
  int32_t get_int(int64_t i) const {
    return view_.dtype() == DType::kUint8 ? load<uint8_t>(i) : load<int32_t>(i);
  }
  void set(int64_t i, double value) {
    switch (view_.dtype()) {
      case DType::kFp32: return store(i, static_cast<float>(value));
      case DType::kBf16: return store(i, to_bf16(static_cast<float>(value)));
      case DType::kUint8: return store(i, static_cast<uint8_t>(value));
      default: return store(i, static_cast<int32_t>(value));
    }
  }
  std::vector<float> values() const {
    std::vector<float> out(static_cast<size_t>(size()));
    for (int64_t i = 0; i < size(); ++i) out[static_cast<size_t>(i)] = get(i);
    return out;
  }
  std::vector<int32_t> ints() const {
    std::vector<int32_t> out(static_cast<size_t>(size()));
    for (int64_t i = 0; i < size(); ++i) out[static_cast<size_t>(i)] = get_int(i);
    return out;
  }

  // The bytes of all elements, or of row i of the last axis: equality is equality to the bit.
  std::vector<uint8_t> bits() const { return row_bits(0, rows_); }
  std::vector<uint8_t> row_bits(int64_t begin, int64_t end) const {
    std::vector<uint8_t> out;
    const size_t row_bytes = static_cast<size_t>(last_) * element_bytes_;
    for (int64_t row = begin; row < end && row_bytes > 0; ++row) {
      const uint8_t* data = bytes_->read().data() + byte_of(row * last_);
      out.insert(out.end(), data, data + row_bytes);
    }
    return out;
  }
  // Sets row `row` of the last axis from another tensor's row of the same dtype and size.
  void copy_row(int64_t row, const TestTensor& from, int64_t from_row) {
    if (last_ == 0) return;
    std::memcpy(bytes_->write().data() + byte_of(row * last_),
                from.bytes_->read().data() + from.byte_of(from_row * last_),
                static_cast<size_t>(last_) * element_bytes_);
  }

  // True while nothing but elements has been written.
  bool guards_intact() const {
    std::vector<uint8_t> rest = bytes_->read();
    for (int64_t i = 0; i < size(); ++i) std::memset(&rest[byte_of(i)], 0xff, element_bytes_);
    for (const uint8_t byte : rest) {
      if (byte != 0xff) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 64;

  static TensorView contiguous(void* data, DType dtype, const std::vector<int64_t>& s) {
    switch (s.size()) {
      case 1: return TensorView(data, dtype, {s[0]});
      case 2: return TensorView(data, dtype, {s[0], s[1]});
      case 3: return TensorView(data, dtype, {s[0], s[1], s[2]});
      default: return TensorView(data, dtype, {s[0], s[1], s[2], s[3]});
    }
  }
  size_t byte_of(int64_t i) const {
    const int64_t lead = gap_ > 0 ? 1 : 0;
    return kGuard +
           static_cast<size_t>(i / last_ * (last_ + gap_) + i % last_ + lead) * element_bytes_;
  }
  template <class T>
  T load(int64_t i) const {
    T value;
    std::memcpy(&value, &bytes_->read()[byte_of(i)], sizeof(T));
    return value;
  }
  template <class T>
  void store(int64_t i, T value) {
    CHECK_EQ(sizeof(T), element_bytes_, "element of {}", view_.describe());
    std::memcpy(&bytes_->write()[byte_of(i)], &value, sizeof(T));
  }

  int64_t rows_ = 1, last_, gap_;
  size_t element_bytes_;
  std::unique_ptr<TestBytes> bytes_;
  TensorView view_;
};

// 64 random bits that depend on (seed, i) alone (SplitMix64).
inline uint64_t random_bits(uint64_t seed, uint64_t i) {
  uint64_t z = (seed * 0x9e3779b97f4a7c15u) ^ (i + 1) * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Mean 0, variance 1, within +-3.5: the sum of four uniform numbers.
inline double gaussian(uint64_t seed, uint64_t i) {
  const uint64_t bits = random_bits(seed, i);
  const uint64_t sum =
      (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  return (static_cast<double>(sum) / 65536.0 - 2.0) * std::sqrt(3.0);
}

// What the values are like: every kernel must survive all of them.
enum class Pattern { kNormal, kOutliers, kZero, kEqual };
inline constexpr Pattern kPatterns[] = {Pattern::kNormal, Pattern::kOutliers, Pattern::kZero,
                                        Pattern::kEqual};

inline void fill_random(TestTensor& t, uint64_t seed, double scale = 1,
                        Pattern pattern = Pattern::kNormal) {
  for (int64_t i = 0; i < t.size(); ++i) {
    double value = gaussian(seed, static_cast<uint64_t>(i));
    if (pattern == Pattern::kOutliers && i % 29 == 3) value *= 100;
    if (pattern == Pattern::kZero) value = 0;
    if (pattern == Pattern::kEqual) value = 0.71;
    t.set(i, value * scale);
  }
}

inline TestTensor int_tensor(const std::vector<int32_t>& values, std::vector<int64_t> shape) {
  TestTensor t(DType::kInt32, std::move(shape));
  for (int64_t i = 0; i < t.size(); ++i) t.set(i, values[static_cast<size_t>(i)]);
  return t;
}

inline TestTensor int_tensor(const std::vector<int32_t>& values) {
  return int_tensor(values, {static_cast<int64_t>(values.size())});
}

}  // namespace briar
