// The attention kernels on the GPU; attention() of sm90 chooses.
#pragma once

#include "kernels/attention/attention.h"

namespace briar::sm90 {

// Any types and dimensions: a warp a query and head. Fp32 models and odd heads.
void attention_any(Stream& stream, const AttentionArgs& args);

// bf16, heads of 64 or 128: tensor cores, the queries' heads of one KV head together; few queries
// share their keys among blocks (split KV).
void attention_tiled(Stream& stream, const AttentionArgs& args);

}  // namespace briar::sm90
