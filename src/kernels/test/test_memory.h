// Memory of test tensors. For the GPU it is the device's own, of exactly the size asked for, beside
// a copy for the host: an op's launcher that reads device memory on the host crashes in the test,
// too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace briar {

class TestBytes {
 public:
  // For the target of the test that runs now; every byte is 0xff.
  explicit TestBytes(size_t num_bytes);
  template <class T>
  explicit TestBytes(const std::vector<T>& values) : TestBytes(values.size() * sizeof(T)) {
    const auto from = std::as_bytes(std::span(values));
    for (size_t i = 0; i < from.size(); ++i) host_[i] = static_cast<uint8_t>(from[i]);
  }
  ~TestBytes();
  TestBytes(const TestBytes&) = delete;
  TestBytes& operator=(const TestBytes&) = delete;

  // What kernels take.
  void* kernel_data() const { return device_ != nullptr ? device_ : host_.data(); }
  // As the last op has left them.
  const std::vector<uint8_t>& read() const {
    if (device_is_newer_) download();
    return host_;
  }
  std::vector<uint8_t>& write() {
    read();
    host_is_newer_ = true;
    return host_;
  }

  // Before an op: the device gets what the host has changed, and may change all of it.
  static void before_op();

 private:
  void download() const;

  mutable std::vector<uint8_t> host_;
  void* device_ = nullptr;
  bool host_is_newer_ = true;
  mutable bool device_is_newer_ = false;
};

}  // namespace briar
