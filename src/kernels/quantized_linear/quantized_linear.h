// out = x * weight^T + bias with block-quantised weights, and rows of such weights as embeddings.
#pragma once

#include "device/device.h"
#include "device/tensor.h"
#include "kernels/quantized_linear/block_format.h"

namespace briar {

struct QuantizedLinearArgs {
  TensorView x;        // [num_tokens, in_features] fp32 or bf16, row stride may exceed in_features;
                       // in_features is a multiple of the format's block size
  TensorView weight;   // [packed_bytes] uint8: pack() of layout.h, out_features x in_features
  BlockFormat format;  // of weight
  TensorView bias;     // [out_features] fp32 or bf16; absent = none
  TensorView out;  // [num_tokens, out_features] fp32 or bf16, row stride may exceed out_features
};

// The product with exactly the weights that the file describes and x as it is given: neither is
// rounded. For each group of 32 columns (Q6_K: 16) that share a scale, the stored integers times x
// are summed in one fp32 chain in the order of the columns; the group's sum times its fp32 scale,
// and its min times the sum of x over the group, are added to the row's fp32 chain in the order of
// the groups. That order depends on in_features alone: a row's result has the same bits in any
// batch, with any number of threads, and in any slice of out_features that starts at a multiple of
// 16. bf16 output is rounded once, after the bias.
//
// bf16 x on processors with AVX512-BF16 goes through vdpbf16ps, which adds a pair of columns a step
// and takes denormals as zero; everything said above holds there, but the last bits differ from
// those of the same x in fp32.
//
// A NaN or infinity in x makes its row of out NaN or infinite throughout, and touches no other row.
void quantized_linear(Stream& stream, const QuantizedLinearArgs& args);

struct QuantizedEmbeddingArgs {
  TensorView token_ids;  // [num_tokens] int32, each in [0, vocab_size): the engine has checked
  TensorView table;      // [packed_bytes] uint8: pack() of layout.h, vocab_size x hidden_size
  BlockFormat format;    // of table
  int64_t vocab_size;
  TensorView out;  // [num_tokens, hidden_size] fp32 or bf16
};

// out[i] = row token_ids[i] of the table: the value that the file describes, rounded once to fp32
// (and, for bf16, once more).
void quantized_embedding(Stream& stream, const QuantizedEmbeddingArgs& args);

}  // namespace briar
