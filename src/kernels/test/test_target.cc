#include "kernels/test/test_target.h"

#include <map>
#include <memory>

#include "kernels/test/test_memory.h"

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

Stream& test_gpu() {
  static Target gpu;
  if (!gpu.device) {
    gpu.device = make_gpu();
    gpu.stream = gpu.device->make_stream();
  }
  return *gpu.stream;
}

Stream& test_stream(int threads) {
  if (on_cuda()) {
    TestBytes::before_op();
    return test_gpu();
  }
  static std::map<int, Target> cpus;  // by threads
  Target& cpu = cpus[threads];
  if (!cpu.device) {
    cpu.device = make_cpu_device(threads);
    cpu.stream = cpu.device->make_stream();
  }
  return *cpu.stream;
}

Tolerance product_tolerance(Tolerance cpu, DType out) {
  if (!on_cuda()) return cpu;
  return out == DType::kBf16 ? Tolerance{0x1p-7, 0x1p-8, 2.5e-3, cpu.least_size}
                             : Tolerance{1e-4, 1e-5, 1e-5, cpu.least_size};
}

Tolerance attention_tolerance(Tolerance cpu, DType out) {
  if (!on_cuda()) return cpu;
  // The tensor cores take the probabilities rounded to bf16. Measured on an H200: rms 2e-3, one
  // element of 100,000 at 1.9 times (2^-6, 2^-7).
  return out == DType::kBf16 ? Tolerance{0x1p-6, 0x1.8p-6, 4e-3, cpu.least_size}
                             : Tolerance{1e-4, 1e-5, 1e-5, cpu.least_size};
}

}  // namespace briar
