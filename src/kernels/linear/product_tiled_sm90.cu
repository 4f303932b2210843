// Many rows: a block computes 128 rows by 128 columns; four warps of 64 x 64 each. Stages of 32 of
// k travel through shared memory ahead of use.
//
// As in product_stream_sm90.cu, k is numbered so that a lane's fragments are 16 consecutive bytes:
// eight lanes then read two whole rows of a stage, free of bank conflicts.
#include "kernels/cuda/find_tile.cuh"
#include "kernels/linear/product_sm90.cuh"

namespace briar::sm90 {
namespace {

constexpr int kThreads = 128;
constexpr int kTile = 128;  // rows and columns of a block
constexpr int kStep = 32;   // of k
constexpr int kStages = 4;
constexpr int kRowWords = kStep / 8;  // uint4 of a row of bf16 in a stage

template <bool kIsMxfp4>
struct Stage {
  uint4 x[kTile][kRowWords];
  uint4 weight[kTile][kIsMxfp4 ? 1 : kRowWords];
};

// Which rows a block works on: tile `index` of all groups' tiles, in order.
struct TileRows {
  int group = -1;  // -1: there are fewer tiles
  int64_t begin = 0, end = 0;
};

__device__ TileRows rows_of_tile(const ProductParams& p, int64_t index) {
  const GroupTile found = find_tile(p.num_groups, index, [&](int group) {
    return (p.group_end(group) - p.group_begin(group) + kTile - 1) / kTile;
  });
  if (found.group < 0) return {};
  const int64_t begin = p.group_begin(found.group) + found.tile * kTile;
  return {found.group, begin, min(p.group_end(found.group), begin + kTile)};
}

// Copies one stage; thread i carries row i of x and column i of the weights.
template <bool kIsMxfp4>
struct Loader {
  const uint4* x;
  const uint4* weight;
  bool has_x, has_weight;

  __device__ Loader(const ProductParams& p, const TileRows& tile) {
    const int64_t row = tile.begin + threadIdx.x;
    const int64_t column = int64_t{blockIdx.x} * kTile + threadIdx.x;
    has_x = row < tile.end;
    has_weight = column < p.n;
    x = reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(p.x) +
                                       p.x_row(has_x ? row : tile.begin) * p.x_stride);
    const int64_t words_a_row = kIsMxfp4 ? p.k / 32 : p.k / 8;
    weight = static_cast<const uint4*>(p.weight) +
             (tile.group * p.n + (has_weight ? column : 0)) * words_a_row;
  }
  __device__ void load(Stage<kIsMxfp4>& stage, int64_t step) const {
    constexpr int kWeightWords = kIsMxfp4 ? 1 : kRowWords;
#pragma unroll
    for (int i = 0; i < kRowWords; ++i) {
      copy_async(&stage.x[threadIdx.x][i], x + step * kRowWords + i, has_x);
    }
#pragma unroll
    for (int i = 0; i < kWeightWords; ++i) {
      copy_async(&stage.weight[threadIdx.x][i], weight + step * kWeightWords + i, has_weight);
    }
  }
};

using Sums = float[4][8][4];  // of a warp: 4 x 16 rows, 8 x 8 columns

struct Lane {
  int g = static_cast<int>(threadIdx.x) % kWarp / 4, t = static_cast<int>(threadIdx.x) % 4;
  int row = static_cast<int>(threadIdx.x) / kWarp / 2 * 64;
  int column = static_cast<int>(threadIdx.x) / kWarp % 2 * 64;
};

// Eight consecutive elements of one column's weights.
__device__ inline void weight_fragment(const Stage<false>& stage, int column, int t, uint32_t,
                                       uint32_t (&out)[4]) {
  const uint4 w = stage.weight[column][t];
  out[0] = w.x, out[1] = w.y, out[2] = w.z, out[3] = w.w;
}
__device__ inline void weight_fragment(const Stage<true>& stage, int column, int t, uint32_t scale,
                                       uint32_t (&out)[4]) {
  expand_mxfp4(reinterpret_cast<const uint32_t*>(stage.weight[column])[t], mxfp4_scale(scale), out);
}

template <bool kIsMxfp4>
__device__ void multiply_stage(const Stage<kIsMxfp4>& stage, const Lane& lane,
                               const uint32_t (&scales)[8], Sums& d) {
  uint4 a[4][2];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    a[i][0] = stage.x[lane.row + 16 * i + lane.g][lane.t];
    a[i][1] = stage.x[lane.row + 16 * i + lane.g + 8][lane.t];
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    uint32_t b[4];
    weight_fragment(stage, lane.column + 8 * j + lane.g, lane.t, scales[j], b);
    const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint32_t a0[4] = {a[i][0].x, a[i][1].x, a[i][0].y, a[i][1].y};
      const uint32_t a1[4] = {a[i][0].z, a[i][1].z, a[i][0].w, a[i][1].w};
      mma(d[i][j], a0, b0);
      mma(d[i][j], a1, b1);
    }
  }
}

// The scales of this lane's columns for one step of k.
template <bool kIsMxfp4>
__device__ void load_scales(const ProductParams& p, const TileRows& tile, const Lane& lane,
                            int64_t step, uint32_t (&scales)[8]) {
  if constexpr (kIsMxfp4) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int64_t column = int64_t{blockIdx.x} * kTile + lane.column + 8 * j + lane.g;
      scales[j] = 127;
      if (column < p.n && step < p.k / 32) {
        scales[j] = __ldg(p.scales + (tile.group * p.n + column) * (p.k / 32) + step);
      }
    }
  }
}

__device__ void write(const ProductParams& p, const TileRows& tile, const Lane& lane,
                      const Sums& d) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int64_t column = int64_t{blockIdx.x} * kTile + lane.column + 8 * j + 2 * lane.t + c;
      if (column >= p.n) continue;
      const float bias = p.bias[tile.group * p.n + column];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int64_t row = tile.begin + lane.row + 16 * i + lane.g;
        if (row < tile.end) p.out.set(row * p.out_stride + column, d[i][j][c] + bias);
        if (row + 8 < tile.end) p.out.set((row + 8) * p.out_stride + column, d[i][j][c + 2] + bias);
      }
    }
  }
}

template <bool kIsMxfp4>
__global__ void __launch_bounds__(kThreads, 2) product_tiled_kernel(ProductParams p) {
  extern __shared__ uint4 shared[];
  auto* stages = reinterpret_cast<Stage<kIsMxfp4>*>(shared);
  wait_for_previous_kernel();
  const TileRows tile = rows_of_tile(p, blockIdx.y);
  if (tile.group < 0) return;
  const Loader<kIsMxfp4> loader(p, tile);
  const Lane lane;
  const int64_t num_steps = p.k / kStep;
  for (int64_t s = 0; s < kStages - 1; ++s) {
    if (s < num_steps) loader.load(stages[s], s);
    copy_async_commit();
  }
  Sums d = {};
  uint32_t scales[8], next_scales[8];
  load_scales<kIsMxfp4>(p, tile, lane, 0, next_scales);
  for (int64_t s = 0; s < num_steps; ++s) {
    copy_async_wait<kStages - 2>();
    __syncthreads();  // the stage is there for all, and the one before it has been used by all
    if (s + kStages - 1 < num_steps) {
      loader.load(stages[(s + kStages - 1) % kStages], s + kStages - 1);
    }
    copy_async_commit();
#pragma unroll
    for (int j = 0; j < 8; ++j) scales[j] = next_scales[j];
    load_scales<kIsMxfp4>(p, tile, lane, s + 1, next_scales);
    multiply_stage<kIsMxfp4>(stages[s % kStages], lane, scales, d);
  }
  write(p, tile, lane, d);
}

template <bool kIsMxfp4>
void launch_for(Stream& stream, const Product& p) {
  const int64_t num_groups = p.weight.size(0);
  // Every group may end with a partial tile; those that are too many return at once.
  const int64_t max_tiles = p.out.size(0) == 0 ? 0 : p.out.size(0) / kTile + num_groups;
  launch(stream, "product_tiled", product_tiled_kernel<kIsMxfp4>,
         {.grid = dim3(static_cast<unsigned>(ceil_div(p.weight.size(1), kTile)),
                       static_cast<unsigned>(max_tiles)),
          .block = dim3(kThreads),
          .shared_bytes = kStages * int64_t{sizeof(Stage<kIsMxfp4>)}},
         product_params(p));
}

}  // namespace

void product_tiled(Stream& stream, const Product& p) {
  if (p.weight.dtype() == DType::kMxfp4) {
    launch_for<true>(stream, p);
  } else {
    launch_for<false>(stream, p);
  }
}

}  // namespace briar::sm90
