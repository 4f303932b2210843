// Runs a kernel test under every instruction set.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "device/device.h"
#include "kernels/cpu/isa.h"

namespace briar {

// The sets that can run here (AVX2 always).
inline std::vector<CpuIsa> testable_isas() {
  if (cpu_isa() != CpuIsa::kAvx2) return {CpuIsa::kAvx2, CpuIsa::kAvx512};
  return {CpuIsa::kAvx2};
}

// One parameterised case a set; skipped where the processor lacks it.
class IsaTest : public testing::TestWithParam<CpuIsa> {
 protected:
  void SetUp() override {
    if (GetParam() > cpu_isa()) GTEST_SKIP() << "no " << to_string(GetParam()) << " here";
    isa_.emplace(GetParam());
  }

 private:
  std::optional<ScopedCpuIsa> isa_;
};

// A CPU stream with so many threads, made once.
inline Stream& test_stream(int threads = 2) {
  struct Cpu {
    std::unique_ptr<Device> device;
    std::unique_ptr<Stream> stream;
  };
  static std::map<int, Cpu> cpus;
  Cpu& cpu = cpus[threads];
  if (!cpu.device) {
    cpu.device = make_cpu_device(threads);
    cpu.stream = cpu.device->make_stream();
  }
  return *cpu.stream;
}

}  // namespace briar

#define BRIAR_TEST_EVERY_ISA(Suite)                                                  \
  class Suite : public ::briar::IsaTest {};                                          \
  INSTANTIATE_TEST_SUITE_P(                                                          \
      Isa, Suite, testing::Values(::briar::CpuIsa::kAvx2, ::briar::CpuIsa::kAvx512), \
      [](const auto& info) { return info.param == ::briar::CpuIsa::kAvx2 ? "avx2" : "avx512"; })
