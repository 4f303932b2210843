// Which instruction set the CPU kernels use. Every *_cpu.cc file is compiled once per set, into
// namespace briar::avx2 and briar::avx512 (those with bf16 products of their own into
// briar::avx512bf16 as well); the op's launcher picks one at run time.
#pragma once

#include <cstdint>

namespace briar {

class Stream;

enum class CpuIsa { kAvx2, kAvx512, kAvx512Bf16 };  // each includes those before it

// The best set that this processor has, or a lesser one if the environment says BRIAR_ISA=avx2 or
// avx512. A processor without AVX2, FMA and F16C is refused with a UserError.
CpuIsa cpu_isa();
const char* to_string(CpuIsa isa);
// Whether this processor has it, whatever the environment says.
bool cpu_supports(CpuIsa isa);

// Memory for the time of one kernel, freed with __builtin_free(); throws UserError if there is
// none. Not inline, so that no code of an instruction set holds the exception's.
void* allocate_scratch(int64_t num_bytes);

// Tests compare both sets on one machine: overrides cpu_isa() until destroyed. Not thread-safe.
class ScopedCpuIsa {
 public:
  explicit ScopedCpuIsa(CpuIsa isa);
  ~ScopedCpuIsa();

 private:
  CpuIsa previous_;
};

}  // namespace briar

// Declares both builds of one CPU kernel.
#define BRIAR_DECLARE_CPU_KERNEL(...) \
  namespace avx2 {                    \
  __VA_ARGS__;                        \
  }                                   \
  namespace avx512 {                  \
  __VA_ARGS__;                        \
  }

// Calls the build that fits this processor.
#define BRIAR_CALL_CPU_KERNEL(name, ...)                                    \
  (::briar::cpu_isa() != ::briar::CpuIsa::kAvx2 ? avx512::name(__VA_ARGS__) \
                                                : avx2::name(__VA_ARGS__))
