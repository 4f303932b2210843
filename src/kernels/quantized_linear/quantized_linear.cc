#include "kernels/quantized_linear/quantized_linear.h"

#include "base/thread_pool.h"
#include "device/shape_check.h"
#include "kernels/quantized_linear/quantized_linear_cpu.h"

namespace briar {
namespace {

// One row of a packed matrix into out[in_features], as fp32 or bf16.
template <class T>
void unpack_row(const QuantizedShape& shape, const uint8_t* packed, int64_t row, T* out) {
  const PackedBlock layout = packed_block(shape.format);
  const uint8_t* block = packed + row / kPanelRows * panel_bytes(shape.format, shape.in_features);
  for (int64_t at = 0; at < shape.in_features; block += layout.bytes()) {
    for (int64_t g = 0; g < layout.num_groups; ++g, at += kGroupColumns) {
      float values[kGroupColumns];
      unpack_group(shape.format, block, g, row % kPanelRows, values);
      for (int64_t i = 0; i < kGroupColumns; ++i) {
        if constexpr (std::is_same_v<T, Bf16>) {
          out[at + i] = to_bf16(values[i]);
        } else {
          out[at + i] = values[i];
        }
      }
    }
  }
}

template <class T>
void look_up_rows(ThreadPool& pool, const QuantizedEmbeddingArgs& a) {
  const auto* ids = static_cast<const int32_t*>(a.token_ids.data());
  const auto* packed = static_cast<const uint8_t*>(a.table.data());
  auto* out = static_cast<T*>(a.out.data());
  const QuantizedShape shape{a.format, a.vocab_size, a.out.size(1)};
  pool.for_ranges(a.out.size(0), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      unpack_row(shape, packed, ids[i], out + i * a.out.stride(0));
    }
  });
}

void check_weight(const char* op, const TensorView& weight, const QuantizedShape& shape) {
  CHECK_EQ(weight.size(0), packed_bytes(shape), "{}: packed bytes of {} [{}, {}]", op,
           to_string(shape.format), shape.out_features, shape.in_features);
}

}  // namespace

void quantized_linear(Stream& stream, const QuantizedLinearArgs& a) {
  ShapeCheck s("quantized_linear");
  s("x", a.x, {DType::kFp32, DType::kBf16}, {"num_tokens", "in_features"});
  s("weight", a.weight, {DType::kUint8}, {"packed_bytes"});
  s("out", a.out, {DType::kFp32, DType::kBf16}, {"num_tokens", "out_features"});
  if (a.bias) s("bias", a.bias, {DType::kFp32, DType::kBf16}, {"out_features"});
  check_weight("quantized_linear", a.weight, {a.format, s["out_features"], s["in_features"]});
  ThreadPool& pool = cpu_thread_pool(stream);
  if (cpu_isa() == CpuIsa::kAvx512Bf16) return avx512bf16::quantized_product(pool, a);
  BRIAR_CALL_CPU_KERNEL(quantized_product, pool, a);
}

void quantized_embedding(Stream& stream, const QuantizedEmbeddingArgs& a) {
  ShapeCheck s("quantized_embedding");
  s("token_ids", a.token_ids, {DType::kInt32}, {"num_tokens"});
  s("table", a.table, {DType::kUint8}, {"packed_bytes"});
  s("out", a.out, {DType::kFp32, DType::kBf16}, {"num_tokens", "hidden_size"});
  check_weight("quantized_embedding", a.table, {a.format, a.vocab_size, s["hidden_size"]});
  const auto* ids = a.token_ids.ptr<int32_t>();
  for (int64_t i = 0; i < s["num_tokens"]; ++i) {
    CHECK(ids[i] >= 0 && ids[i] < a.vocab_size,
          "quantized_embedding: token_ids[{}] = {} of a vocabulary of {}", i, ids[i], a.vocab_size);
  }
  ThreadPool& pool = cpu_thread_pool(stream);
  if (a.out.dtype() == DType::kBf16) {
    look_up_rows<Bf16>(pool, a);
  } else {
    look_up_rows<float>(pool, a);
  }
}

}  // namespace briar
