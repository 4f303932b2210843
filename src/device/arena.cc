#include "device/arena.h"

#include <algorithm>

namespace briar {
namespace {
constexpr int64_t kArenaAlignment = 64;

int64_t align_up(int64_t num_bytes) {
  return (num_bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}
}  // namespace

Arena::Arena(Device& device, int64_t capacity_bytes, const char* purpose)
    : buffer_(device, align_up(capacity_bytes)), purpose_(purpose) {}

void* Arena::bytes(int64_t num_bytes) {
  const int64_t end = used_ + align_up(num_bytes);
  CHECK_LE(end, capacity_bytes(), "the {} arena is full: {} bytes asked, {} in use", purpose_,
           num_bytes, used_);
  void* data = static_cast<char*>(buffer_.data()) + used_;
  used_ = end;
  peak_ = std::max(peak_, used_);
  return data;
}

TensorView Arena::tensor(DType dtype, std::initializer_list<int64_t> shape) {
  TensorView view(nullptr, dtype, shape);
  return TensorView(bytes(view.num_bytes()), dtype, shape);
}

int64_t Arena::footprint(DType dtype, int64_t num_elements) {
  return align_up(dtype_bytes(dtype, num_elements));
}

}  // namespace briar
