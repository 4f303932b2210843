// Runs a kernel test under every instruction set and on the GPU.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "device/device.h"
#include "kernels/cpu/isa.h"
#include "kernels/test/test_target.h"

namespace briar {

// The sets that can run here (AVX2 always).
inline std::vector<CpuIsa> testable_isas() {
  if (cpu_isa() != CpuIsa::kAvx2) return {CpuIsa::kAvx2, CpuIsa::kAvx512};
  return {CpuIsa::kAvx2};
}

// One parameterised case a target; skipped where the machine lacks it.
class IsaTest : public testing::TestWithParam<TestTarget> {
 protected:
  void SetUp() override {
    if (GetParam() == TestTarget::kCuda) {
      if (!has_test_gpu()) GTEST_SKIP() << "no GPU, or a build without CUDA";
    } else {
      const CpuIsa isa = GetParam() == TestTarget::kAvx2     ? CpuIsa::kAvx2
                         : GetParam() == TestTarget::kAvx512 ? CpuIsa::kAvx512
                                                             : CpuIsa::kAvx512Bf16;
      if (isa > cpu_isa()) GTEST_SKIP() << "no " << to_string(isa) << " here";
      isa_.emplace(isa);
    }
    current_test_target() = GetParam();
  }
  void TearDown() override { current_test_target() = TestTarget::kAvx2; }

 private:
  std::optional<ScopedCpuIsa> isa_;
};

}  // namespace briar

// For cases that hold the CPU kernels to what the GPU's do not promise.
#define BRIAR_CPU_ONLY(why) \
  if (on_cuda()) GTEST_SKIP() << (why)

#define BRIAR_TEST_TARGETS(Suite, ...)                               \
  class Suite : public ::briar::IsaTest {};                          \
  INSTANTIATE_TEST_SUITE_P(Isa, Suite, testing::Values(__VA_ARGS__), \
                           [](const auto& info) { return ::briar::to_string(info.param); })

#define BRIAR_TEST_EVERY_ISA(Suite)                                                   \
  BRIAR_TEST_TARGETS(Suite, ::briar::TestTarget::kAvx2, ::briar::TestTarget::kAvx512, \
                     ::briar::TestTarget::kCuda)
