// Few rows: bound by reading the weights once.
//
// A block owns 16 output columns; its warps share k in interleaved chunks and add up at the end, in
// warp order. Weights are the 16-row operand of the matrix instruction and x the 8-column one, both
// straight from memory: a sum over k does not mind in which order k is numbered, so a lane may take
// for its fragments whatever 16 bytes it can load at once, as long as both operands do the same.
#include "kernels/linear/product_sm90.cuh"

namespace briar::sm90 {
namespace {

constexpr int kWarps = 8;
constexpr int kColumns = 16;

// Sixteen columns of weights, a chunk of k at a time: lane 4 g + t holds the t-th quarter of the
// chunk for columns g and g + 8.
struct Bf16Chunks {
  static constexpr int kChunk = 32, kAhead = 4;
  uint4 low, high;

  __device__ void load(const ProductParams& p, int64_t row_low, int64_t row_high, bool has_low,
                       bool has_high, int64_t chunk, int t) {
    const auto* weight = static_cast<const __nv_bfloat16*>(p.weight);
    const int64_t at = chunk * kChunk + 8 * t;
    low = high = make_uint4(0, 0, 0, 0);
    if (at < p.k && has_low) {
      low = __ldcs(reinterpret_cast<const uint4*>(weight + row_low * p.k + at));
    }
    if (at < p.k && has_high) {
      high = __ldcs(reinterpret_cast<const uint4*>(weight + row_high * p.k + at));
    }
  }
  // d[tile] += these weights times 8 rows of x each; rows[tile] points to a row of x or is null.
  template <int kTiles>
  __device__ void multiply(const __nv_bfloat16* const (&rows)[kTiles], int64_t k, int64_t chunk,
                           int t, float (&d)[kTiles][4]) const {
    const int64_t at = chunk * kChunk + 8 * t;
    const uint32_t a0[4] = {low.x, high.x, low.y, high.y}, a1[4] = {low.z, high.z, low.w, high.w};
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      uint4 x = make_uint4(0, 0, 0, 0);
      if (at < k && rows[i] != nullptr) x = *reinterpret_cast<const uint4*>(rows[i] + at);
      const uint32_t b0[2] = {x.x, x.y}, b1[2] = {x.z, x.w};
      mma(d[i], a0, b0);
      mma(d[i], a1, b1);
    }
  }
};

struct Mxfp4Chunks {
  static constexpr int kChunk = 128, kAhead = 3;
  uint4 low, high;
  uint32_t low_scale, high_scale;

  __device__ void load(const ProductParams& p, int64_t row_low, int64_t row_high, bool has_low,
                       bool has_high, int64_t chunk, int t) {
    const auto* weight = static_cast<const uint4*>(p.weight);  // a uint4: a block of 32 values
    const int64_t block = chunk * 4 + t, num_blocks = p.k / 32;
    low = high = make_uint4(0, 0, 0, 0);
    low_scale = high_scale = 127;
    if (block < num_blocks && has_low) {
      low = __ldcs(weight + row_low * num_blocks + block);
      low_scale = p.scales[row_low * num_blocks + block];
    }
    if (block < num_blocks && has_high) {
      high = __ldcs(weight + row_high * num_blocks + block);
      high_scale = p.scales[row_high * num_blocks + block];
    }
  }
  template <int kTiles>
  __device__ void multiply(const __nv_bfloat16* const (&rows)[kTiles], int64_t k, int64_t chunk,
                           int t, float (&d)[kTiles][4]) const {
    const int64_t at = chunk * kChunk + 32 * t;
    const __nv_bfloat162 scale_low = mxfp4_scale(low_scale), scale_high = mxfp4_scale(high_scale);
    const uint32_t words_low[4] = {low.x, low.y, low.z, low.w},
                   words_high[4] = {high.x, high.y, high.z, high.w};
#pragma unroll
    for (int word = 0; word < 4; ++word) {
      uint32_t l[4], h[4];
      expand_mxfp4(words_low[word], scale_low, l);
      expand_mxfp4(words_high[word], scale_high, h);
      const uint32_t a0[4] = {l[0], h[0], l[1], h[1]}, a1[4] = {l[2], h[2], l[3], h[3]};
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (at < k && rows[i] != nullptr) {
          x = *reinterpret_cast<const uint4*>(rows[i] + at + 8 * word);
        }
        const uint32_t b0[2] = {x.x, x.y}, b1[2] = {x.z, x.w};
        mma(d[i], a0, b0);
        mma(d[i], a1, b1);
      }
    }
  }
};

// One warp's share of k for 16 columns and 8 * kTiles rows.
template <class Chunks, int kTiles>
__device__ void multiply_share(const ProductParams& p, int64_t row_low, int64_t row_high,
                               bool has_low, bool has_high,
                               const __nv_bfloat16* const (&rows)[kTiles], float (&d)[kTiles][4]) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, t = static_cast<int>(threadIdx.x) % 4;
  const int64_t num_chunks = (p.k + Chunks::kChunk - 1) / Chunks::kChunk;
  for (int64_t chunk = warp; chunk < num_chunks; chunk += kWarps * Chunks::kAhead) {
    Chunks w[Chunks::kAhead];
#pragma unroll
    for (int i = 0; i < Chunks::kAhead; ++i) {
      w[i].load(p, row_low, row_high, has_low, has_high, chunk + i * kWarps, t);
    }
#pragma unroll
    for (int i = 0; i < Chunks::kAhead; ++i) w[i].multiply(rows, p.k, chunk + i * kWarps, t, d);
  }
}

// Adds the warps' shares and writes 16 columns of up to 8 * kTiles rows from `first_row`.
template <int kTiles>
__device__ void finish(const ProductParams& p, int group, int64_t first_row, int64_t end_row,
                       float (*shares)[kTiles][8][kColumns]) {
  for (int i = static_cast<int>(threadIdx.x); i < kTiles * 8 * kColumns; i += kWarps * kWarp) {
    const int64_t row = first_row + i / kColumns;
    const int64_t column = int64_t{blockIdx.x} * kColumns + i % kColumns;
    if (row >= end_row || column >= p.n) continue;
    float sum = 0.f;
    for (int w = 0; w < kWarps; ++w) {
      sum += shares[w][i / (8 * kColumns)][i / kColumns % 8][i % kColumns];
    }
    p.out.set(row * p.out_stride + column, sum + p.bias[group * p.n + column]);
  }
}

template <class Chunks, int kTiles>
__global__ void __launch_bounds__(kWarps* kWarp) product_stream_kernel(ProductParams p) {
  __shared__ float shares[kWarps][kTiles][8][kColumns];
  wait_for_previous_kernel();
  const int group = static_cast<int>(blockIdx.y), warp = static_cast<int>(threadIdx.x) / kWarp;
  const int g = static_cast<int>(threadIdx.x) % kWarp / 4, t = static_cast<int>(threadIdx.x) % 4;
  const int64_t column = int64_t{blockIdx.x} * kColumns + g;
  const int64_t end = p.group_end(group);
  for (int64_t first = p.group_begin(group); first < end; first += 8 * kTiles) {
    const __nv_bfloat16* rows[kTiles];
    float d[kTiles][4] = {};
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const int64_t row = first + 8 * i + g;
      rows[i] =
          row < end ? static_cast<const __nv_bfloat16*>(p.x) + p.x_row(row) * p.x_stride : nullptr;
    }
    multiply_share<Chunks>(p, group * p.n + column, group * p.n + column + 8, column < p.n,
                           column + 8 < p.n, rows, d);
    __syncthreads();  // the previous rows' shares have been read
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      shares[warp][i][2 * t][g] = d[i][0];
      shares[warp][i][2 * t + 1][g] = d[i][1];
      shares[warp][i][2 * t][g + 8] = d[i][2];
      shares[warp][i][2 * t + 1][g + 8] = d[i][3];
    }
    __syncthreads();
    finish<kTiles>(p, group, first, end, shares);
  }
}

template <class Chunks>
auto kernel_for(int num_tiles) {
  switch (num_tiles) {
    case 1: return product_stream_kernel<Chunks, 1>;
    case 2: return product_stream_kernel<Chunks, 2>;
    case 4: return product_stream_kernel<Chunks, 4>;
    default: CHECK_EQ(num_tiles, 8, "tiles of 8 rows"); return product_stream_kernel<Chunks, 8>;
  }
}

}  // namespace

void product_stream(Stream& stream, const Product& p, int num_tiles) {
  launch(stream, "product_stream",
         p.weight.dtype() == DType::kMxfp4 ? kernel_for<Mxfp4Chunks>(num_tiles)
                                           : kernel_for<Bf16Chunks>(num_tiles),
         {.grid = dim3(static_cast<unsigned>(ceil_div(p.weight.size(1), kColumns)),
                       static_cast<unsigned>(p.weight.size(0))),
          .block = dim3(kWarps * kWarp)},
         product_params(p));
}

}  // namespace briar::sm90
