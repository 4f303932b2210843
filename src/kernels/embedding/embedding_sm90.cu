// out[i] = table[token_ids[i]]: a block a token. Bound by memory: a row read and a row written.
#include "kernels/cuda/common.cuh"
#include "kernels/embedding/embedding.h"

namespace briar::sm90 {
namespace {

struct Params {
  const int32_t* token_ids;
  AnyFloats table;
  float* out;
  int64_t hidden_size, table_stride, out_stride;
};

__global__ void embedding_kernel(Params p) {
  wait_for_previous_kernel();
  const int64_t token = blockIdx.x;
  const int64_t from = int64_t{p.token_ids[token]} * p.table_stride;
  for (int64_t i = threadIdx.x; i < p.hidden_size; i += blockDim.x) {
    p.out[token * p.out_stride + i] = p.table[from + i];
  }
}

}  // namespace

void embedding(Stream& stream, const EmbeddingArgs& a) {
  launch(stream, "embedding", embedding_kernel,
         {.grid = dim3(static_cast<unsigned>(a.out.size(0))), .block = dim3(256)},
         Params{a.token_ids.ptr<int32_t>(), any_floats(a.table), a.out.ptr<float>(), a.out.size(1),
                a.table.stride(0), a.out.stride(0)});
}

}  // namespace briar::sm90
