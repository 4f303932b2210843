// What a kernel test runs on: an instruction set of the CPU, or the GPU.
#pragma once

#include "device/device.h"
#include "kernels/test/compare.h"

namespace briar {

enum class TestTarget { kAvx2, kAvx512, kAvx512Bf16, kCuda };
const char* to_string(TestTarget target);

// Of the test that runs now; kAvx2 outside of any.
TestTarget& current_test_target();
inline bool on_cuda() { return current_test_target() == TestTarget::kCuda; }

// True in CUDA builds on a machine with a GPU.
bool has_test_gpu();

// Streams of the current target, made once; `threads` for the CPU. To be called for each op, which
// then sees what has been written to test memory.
Stream& test_stream(int threads = 2);
// The GPU's, whatever the target.
Stream& test_gpu();

// Tolerances of sums on tensor cores, which add in other orders than the CPU and round fp32 sums
// towards zero; `cpu` elsewhere.
Tolerance product_tolerance(Tolerance cpu, DType out);
Tolerance attention_tolerance(Tolerance cpu, DType out);

}  // namespace briar
