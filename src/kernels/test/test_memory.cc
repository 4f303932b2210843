#include "kernels/test/test_memory.h"

#include <map>
#include <set>

#include "device/device.h"
#include "kernels/test/test_target.h"

namespace briar {
namespace {

std::set<TestBytes*>& live_on_device() {
  static std::set<TestBytes*> live;
  return live;
}

// Device allocations take longer than most cases: blocks are kept, by their exact size.
std::multimap<size_t, void*>& kept_blocks() {
  static std::multimap<size_t, void*> kept;
  return kept;
}

void* take_block(size_t num_bytes) {
  auto& kept = kept_blocks();
  if (const auto found = kept.find(num_bytes); found != kept.end()) {
    void* block = found->second;
    kept.erase(found);
    return block;
  }
  return test_gpu().device().allocate(static_cast<int64_t>(num_bytes));
}

}  // namespace

TestBytes::TestBytes(size_t num_bytes) : host_(num_bytes, 0xff) {
  if (!on_cuda() || num_bytes == 0) return;
  device_ = take_block(num_bytes);
  live_on_device().insert(this);
}

TestBytes::~TestBytes() {
  if (device_ == nullptr) return;
  live_on_device().erase(this);
  kept_blocks().emplace(host_.size(), device_);
}

void TestBytes::before_op() {
  for (TestBytes* bytes : live_on_device()) {
    if (bytes->host_is_newer_) {
      test_gpu().copy(bytes->device_, bytes->host_.data(),
                      static_cast<int64_t>(bytes->host_.size()));
    }
    bytes->host_is_newer_ = false;
    bytes->device_is_newer_ = true;
  }
}

void TestBytes::download() const {
  test_gpu().copy(host_.data(), device_, static_cast<int64_t>(host_.size()));
  test_gpu().synchronize();
  device_is_newer_ = false;
}

}  // namespace briar
