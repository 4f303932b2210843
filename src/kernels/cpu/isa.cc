#include "kernels/cpu/isa.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/result.h"

namespace briar {
namespace {

CpuIsa best() {
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!has_avx512) return CpuIsa::kAvx2;
  return __builtin_cpu_supports("avx512bf16") ? CpuIsa::kAvx512Bf16 : CpuIsa::kAvx512;
}

CpuIsa detect() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("f16c")) {
    throw_user_error("this processor lacks AVX2, FMA or F16C, which Briar's CPU backend needs");
  }
  const char* wanted = std::getenv("BRIAR_ISA");
  if (wanted == nullptr) return best();
  if (std::string_view(wanted) == "avx2") return CpuIsa::kAvx2;
  if (std::string_view(wanted) == "avx512") return std::min(best(), CpuIsa::kAvx512);
  return best();
}

CpuIsa& current() {
  static CpuIsa isa = detect();
  return isa;
}

}  // namespace

CpuIsa cpu_isa() { return current(); }
const char* to_string(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kAvx2: return "AVX2";
    case CpuIsa::kAvx512: return "AVX-512";
    case CpuIsa::kAvx512Bf16: return "AVX-512 with BF16";
  }
  return "?";
}
bool cpu_supports(CpuIsa isa) { return isa <= best(); }

ScopedCpuIsa::ScopedCpuIsa(CpuIsa isa) : previous_(current()) {
  CHECK(cpu_supports(isa), "this processor has no {}", to_string(isa));
  current() = isa;
}
ScopedCpuIsa::~ScopedCpuIsa() { current() = previous_; }

void* allocate_scratch(int64_t num_bytes) {
  void* data = std::malloc(static_cast<size_t>(num_bytes) + 1);
  if (data == nullptr)
    throw_user_error("out of memory: {} bytes of scratch for a kernel", num_bytes);
  return data;
}

}  // namespace briar
