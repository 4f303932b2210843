// The CPU product underneath quantized_linear(). Internal to this folder.
#pragma once

#include "kernels/cpu/isa.h"
#include "kernels/quantized_linear/layout.h"
#include "kernels/quantized_linear/quantized_linear.h"

namespace briar {

class ThreadPool;

BRIAR_DECLARE_CPU_KERNEL(void quantized_product(ThreadPool& pool, const QuantizedLinearArgs& args))
namespace avx512bf16 {
void quantized_product(ThreadPool& pool, const QuantizedLinearArgs& args);
}

}  // namespace briar
