#include "kernels/cpu/isa.h"

#include <cstdlib>
#include <string_view>

#include "base/result.h"

namespace briar {
namespace {

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

CpuIsa detect() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    throw_user_error("this processor lacks AVX2 or FMA, which Briar's CPU backend needs");
  }
  const char* wanted = std::getenv("BRIAR_ISA");
  if (wanted != nullptr && std::string_view(wanted) == "avx2") return CpuIsa::kAvx2;
  return has_avx512() ? CpuIsa::kAvx512 : CpuIsa::kAvx2;
}

CpuIsa& current() {
  static CpuIsa isa = detect();
  return isa;
}

}  // namespace

CpuIsa cpu_isa() { return current(); }
const char* to_string(CpuIsa isa) { return isa == CpuIsa::kAvx512 ? "AVX-512" : "AVX2"; }

ScopedCpuIsa::ScopedCpuIsa(CpuIsa isa) : previous_(current()) {
  CHECK(isa == CpuIsa::kAvx2 || has_avx512(), "this processor has no AVX-512");
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
