// out[i] = table[token_ids[i]]
#pragma once

#include "device/device.h"
#include "device/tensor.h"

namespace briar {

struct EmbeddingArgs {
  TensorView token_ids;  // [num_tokens] int32, each in [0, vocab_size): the engine has checked
  TensorView table;      // [vocab_size, hidden_size] fp32 or bf16
  TensorView out;        // [num_tokens, hidden_size] fp32
};

void embedding(Stream& stream, const EmbeddingArgs& args);

}  // namespace briar
