// What is stored and computed in which type, under one name (docs/numerics.md has the table).
#pragma once

#include <string_view>

#include "base/result.h"
#include "device/dtype.h"

namespace briar {

struct Precision {
  const char* name = "bf16";
  DType activations = DType::kBf16;   // inputs of matrix products and of attention
  DType kv = DType::kBf16;            // KV cache
  bool keeps_stored_weights = false;  // fp32 and bf16 weights as the checkpoint has them; else bf16
  bool keeps_quantized_weights = false;  // GGUF's blocks as they are, where the kernels read them
  DType experts = DType::kBf16;  // experts of an MXFP4 checkpoint: kept (kMxfp4) or expanded
  bool rounds_routing = true;    // routing weights to bfloat16
};

// fp32, bf16, mxfp4 or native; any other name is an error that lists them.
Result<Precision> parse_precision(std::string_view name);
// fp32 or bf16 for the KV cache.
Result<DType> parse_kv_precision(std::string_view name);

}  // namespace briar
