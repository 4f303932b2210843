#include "device/cuda_device.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/result.h"

namespace briar {
namespace {

TEST(CudaDevice, AGpuThatIsNotThereIsAUsersError) {
  EXPECT_THROW(make_cuda_device(num_cuda_devices()), UserError);
  EXPECT_THROW(make_cuda_device(-1), UserError);
}

TEST(CudaDevice, CopiesInQueueOrderAcrossStreams) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no GPU";
  const auto device = make_cuda_device(0);
  EXPECT_EQ(device->kind(), DeviceKind::kCuda);
  const auto first = device->make_stream(), second = device->make_stream();
  std::vector<int> from(1 << 20), to(1 << 20, -1);
  std::iota(from.begin(), from.end(), 0);
  const auto num_bytes = static_cast<int64_t>(from.size() * sizeof(int));
  const int64_t free_before = device->available_bytes();
  {
    const Buffer a(*device, num_bytes), b(*device, num_bytes);
    EXPECT_LT(device->available_bytes(), free_before);
    first->copy(a.data(), from.data(), num_bytes);
    const auto copied = first->record();
    second->wait(*copied);
    second->copy(b.data(), a.data(), num_bytes);
    second->copy(to.data(), b.data(), num_bytes);
    const auto done = second->record();
    done->synchronize();
    EXPECT_TRUE(done->query());
  }
  EXPECT_EQ(to, from);
  EXPECT_THROW(Buffer(*device, int64_t{1} << 50), UserError);
  EXPECT_EQ(Buffer(*device, 1024).num_bytes(), 1024) << "the device still works";
}

TEST(CudaDevice, ACpuKernelRefusesACudaStream) {
  if (num_cuda_devices() == 0) GTEST_SKIP() << "no GPU";
  const auto device = make_cuda_device(0);
  const auto stream = device->make_stream();
  EXPECT_THROW(cpu_thread_pool(*stream), CheckError);
}

}  // namespace
}  // namespace briar
