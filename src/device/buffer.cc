#include <utility>

#include "device/device.h"

namespace briar {

Buffer::Buffer(Device& device, int64_t num_bytes) : device_(&device), num_bytes_(num_bytes) {
  CHECK_GE(num_bytes, 0, "size of a buffer");
  if (num_bytes > 0) data_ = device.allocate(num_bytes);
}

Buffer::~Buffer() {
  if (data_ != nullptr) device_->free(data_, num_bytes_);
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  return *this;
}

}  // namespace briar
