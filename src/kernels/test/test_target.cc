#include "kernels/test/test_target.h"

#include <cstdlib>
#include <map>
#include <memory>

#ifdef BRIAR_CUDA
#include "device/cuda_device.h"
#endif

namespace briar {
namespace {

struct Target {
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

std::unique_ptr<Device> make_gpu() {
#ifdef BRIAR_CUDA
  return make_cuda_device(0);
#else
  CHECK(false, "a build without CUDA has no GPU");
#endif
}

bool find_gpu() {
#ifdef BRIAR_CUDA
  // Tests read results as soon as an op has returned.
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  return num_cuda_devices() > 0;
#else
  return false;
#endif
}

}  // namespace

const char* to_string(TestTarget target) {
  switch (target) {
    case TestTarget::kAvx2: return "avx2";
    case TestTarget::kAvx512: return "avx512";
    case TestTarget::kAvx512Bf16: return "avx512bf16";
    case TestTarget::kCuda: return "cuda";
  }
  CHECK(false, "test target {}", static_cast<int>(target));
}

TestTarget& current_test_target() {
  static TestTarget target = TestTarget::kAvx2;
  return target;
}

bool has_test_gpu() {
  static const bool has_gpu = find_gpu();
  return has_gpu;
}

Stream& test_stream(int threads) {
  static std::map<int, Target> targets;  // by threads; 0: the GPU
  Target& target = targets[on_cuda() ? 0 : threads];
  if (!target.device) {
    target.device = on_cuda() ? make_gpu() : make_cpu_device(threads);
    target.stream = target.device->make_stream();
  }
  return *target.stream;
}

Tolerance product_tolerance(Tolerance cpu, DType out) {
  if (!on_cuda()) return cpu;
  return out == DType::kBf16 ? Tolerance{0x1p-7, 0x1p-8, 2.5e-3, cpu.least_size}
                             : Tolerance{1e-4, 1e-5, 1e-5, cpu.least_size};
}

Tolerance attention_tolerance(Tolerance cpu, DType out) {
  if (!on_cuda()) return cpu;
  return out == DType::kBf16 ? Tolerance{0x1p-6, 0x1p-7, 5e-3, cpu.least_size}
                             : Tolerance{1e-4, 1e-5, 1e-5, cpu.least_size};
}

}  // namespace briar
