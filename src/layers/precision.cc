#include "layers/precision.h"

namespace briar {

Result<Precision> parse_precision(std::string_view name) {
  if (name == "bf16") return Precision{};
  if (name == "mxfp4") return Precision{.name = "mxfp4", .experts = DType::kMxfp4};
  if (name == "native") {
    return Precision{.name = "native",
                     .keeps_stored_weights = true,
                     .keeps_quantized_weights = true,
                     .experts = DType::kMxfp4};
  }
  if (name == "fp32") {
    return Precision{.name = "fp32",
                     .activations = DType::kFp32,
                     .kv = DType::kFp32,
                     .keeps_stored_weights = true,
                     .experts = DType::kMxfp4,
                     .rounds_routing = false};
  }
  return make_error("unknown precision \"{}\": the CPU backend has fp32, bf16, mxfp4 and native",
                    name);
}

Result<DType> parse_kv_precision(std::string_view name) {
  if (name == "bf16") return DType::kBf16;
  if (name == "fp32") return DType::kFp32;
  return make_error("unknown KV precision \"{}\": the CPU backend has fp32 and bf16", name);
}

}  // namespace briar
