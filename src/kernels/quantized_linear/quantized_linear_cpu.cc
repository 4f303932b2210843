// out[m, n] = bias[n] + sum over groups g of scale[n, g] * (sum over k in g of q[n, k] * x[m, k])
//                                          + min[n, g] * (sum over k in g of x[m, k])
//
// A vector lane is an output row (layout.h): a step multiplies one column (or pair of columns) of
// 16 rows with one broadcast element of x, so that no sum ever crosses lanes. A tile is kM tokens
// times kVecs registers of rows; its weights come straight from the packed panels, taken apart in
// registers once for all its tokens. (Expanding strips of weights into the cache first, for many
// tokens, was measured: faster for Q6_K, within 5% for the others.)
//
// Bound: memory bandwidth for few tokens, multiply-add throughput for many.
#include "kernels/quantized_linear/quantized_linear_cpu.h"

#include "base/thread_pool.h"
#include "kernels/quantized_linear/lanes.h"

namespace briar::BRIAR_ISA {
namespace {

constexpr int kVecsPerPanel = static_cast<int>(kPanelRows) / Vec::kLanes;
// Tokens of the largest tile: with two registers of rows what the register file holds.
constexpr int kTileTokens = Vec::kLanes == 16 ? 12 : 6;
// Weights of a task: with many tokens they are read again from the L2 cache.
constexpr int64_t kMaxTaskBytes = 384 * 1024;
// Products smaller than this many weights run on the calling thread: handing out tasks costs more.
constexpr int64_t kSerialWeights = 24 * 1024;
// With few tokens the weights come from memory: fetching ahead of the hardware's prefetchers, which
// stop at every page, pays.
constexpr int64_t kPrefetchBytes = 4096;

constexpr int subgroups(BlockFormat format) { return format == BlockFormat::kQ6_K ? 2 : 1; }
constexpr bool has_mins(BlockFormat format) {
  return format == BlockFormat::kQ4_1 || format == BlockFormat::kQ4_K;
}

// One register of rows of a packed panel.
template <class Math, BlockFormat kFormat>
struct PackedRows {
  static constexpr PackedBlock kBlock = packed_block(kFormat);
  const uint8_t* panel;
  int64_t lane;  // first row in the panel

  BRIAR_INLINE const uint8_t* block(int64_t g) const {
    return panel + g / kBlock.num_groups * kBlock.bytes();
  }
  BRIAR_INLINE const uint8_t* group(int64_t g) const {
    return block(g) + kBlock.header_bytes + g % kBlock.num_groups * kBlock.group_bytes;
  }
  BRIAR_INLINE Vec weights(int64_t g, int step) const {
    const uint8_t* p = group(g);
    if constexpr (kFormat == BlockFormat::kQ8_0) return Math::int8s(p + lane, step);
    if constexpr (kFormat == BlockFormat::kQ6_K) {
      return Math::six_bits(p + 4 * lane, p + 16 * kPanelRows + 4 * lane, step);
    }
    constexpr int kOffset = kFormat == BlockFormat::kQ4_0 ? 8 : 0;
    return Math::template nibbles<kOffset>(p + 4 * lane, step);
  }
  BRIAR_INLINE Vec scale(int64_t g, int sub) const {
    const uint8_t* p = block(g);
    const Vec d = load_half(p + 2 * lane);
    const int64_t in_block = g % kBlock.num_groups;
    // fp16 times a small integer is exact in fp32.
    if constexpr (kFormat == BlockFormat::kQ4_K) {
      return d * load_uint8(p + (4 + in_block) * kPanelRows + lane);
    }
    if constexpr (kFormat == BlockFormat::kQ6_K) {
      return d * load_int8(p + (2 + 2 * in_block + sub) * kPanelRows + lane);
    }
    return d;
  }
  // What is added for each unit of x.
  BRIAR_INLINE Vec min(int64_t g) const {
    const uint8_t* p = block(g);
    const Vec m = load_half(p + 2 * (kPanelRows + lane));
    if constexpr (kFormat == BlockFormat::kQ4_K) {
      return Vec::zero() - m * load_uint8(p + (12 + g % kBlock.num_groups) * kPanelRows + lane);
    }
    return m;
  }
  // This register's share of the panel, some way ahead.
  BRIAR_INLINE void prefetch(int64_t g) const {
    const auto* p = reinterpret_cast<const char*>(group(g)) + kPrefetchBytes;
    constexpr int64_t kShare = kBlock.group_bytes / kVecsPerPanel;
    for (int64_t at = 0; at < kShare; at += 64) {
      _mm_prefetch(p + lane / Vec::kLanes * kShare + at, _MM_HINT_T0);
    }
  }
};

// x of one tile: [step][kM] elements of 32 bits (an fp32, or a pair of bf16), and sums [group][kM].
struct TileInput {
  const float* x;
  const float* sums;
};

// Adds the columns of group g that share scale kSub of it.
template <class Math, BlockFormat kFormat, int kSub, int kM, int kVecs>
BRIAR_INLINE void multiply_columns(const PackedRows<Math, kFormat> (&rows)[kVecs], const float* x,
                                   int64_t g, Vec (&sums)[kM][kVecs]) {
  constexpr int kSteps = kGroupColumns / Math::kColumns / subgroups(kFormat);
  Vec part[kM][kVecs];
  for (int i = 0; i < kM; ++i) {
    for (int v = 0; v < kVecs; ++v) part[i][v] = Vec::zero();
  }
#pragma GCC unroll 32
  for (int step = kSub * kSteps; step < (kSub + 1) * kSteps; ++step) {
    Vec w[kVecs];
    for (int v = 0; v < kVecs; ++v) w[v] = rows[v].weights(g, step);
    for (int i = 0; i < kM; ++i) {
      const Vec xi = Vec::all(x[step * kM + i]);
      for (int v = 0; v < kVecs; ++v) part[i][v] = Math::multiply_add(w[v], xi, part[i][v]);
    }
  }
  for (int v = 0; v < kVecs; ++v) {
    const Vec scale = rows[v].scale(g, kSub);
    for (int i = 0; i < kM; ++i) sums[i][v] = fma(scale, part[i][v], sums[i][v]);
  }
}

// Adds groups [0, num_groups) of `rows` times those of `in` to sums[kM][kVecs].
template <class Math, BlockFormat kFormat, int kM, int kVecs>
BRIAR_INLINE void multiply_tile(const PackedRows<Math, kFormat> (&rows)[kVecs], TileInput in,
                                int64_t num_groups, Vec (&sums)[kM][kVecs]) {
  for (int64_t g = 0; g < num_groups; ++g) {
    const float* x = in.x + g * (kGroupColumns / Math::kColumns) * kM;
    multiply_columns<Math, kFormat, 0>(rows, x, g, sums);
    if constexpr (subgroups(kFormat) == 2) multiply_columns<Math, kFormat, 1>(rows, x, g, sums);
    if constexpr (has_mins(kFormat)) {
      for (int v = 0; v < kVecs; ++v) {
        const Vec min = rows[v].min(g);
        for (int i = 0; i < kM; ++i) {
          sums[i][v] = fma(min, Vec::all(in.sums[g * kM + i]), sums[i][v]);
        }
      }
    }
    for (int v = 0; v < kVecs; ++v) rows[v].prefetch(g);
  }
}

// x of all tokens, tile after tile. The tiles of M tokens: as many of kTileTokens as fit, then of
// 4, 2 and 1.
struct PackedInput {
  float* x = nullptr;
  float* sums = nullptr;
  int64_t num_groups = 0;
  int64_t steps = 0;

  BRIAR_INLINE TileInput tile(int64_t m) const { return {x + m * steps, sums + m * num_groups}; }
};

constexpr int tile_tokens(int64_t remaining) {
  if (remaining >= kTileTokens) return kTileTokens;
  return remaining >= 4 ? 4 : remaining >= 2 ? 2 : 1;
}

template <class Math, class T>
BRIAR_INLINE float step_bits(const T* row, int64_t step) {
  if constexpr (Math::kColumns == 2) {
    float pair;
    __builtin_memcpy(&pair, row + 2 * step, 4);
    return pair;
  } else {
    return to_float(row[step]);
  }
}

// The sum over a group's columns of one token: the same additions whatever tile it is in.
template <class T>
BRIAR_INLINE float group_sum(const T* x) {
  Vec sum = Vec::load(x);
  for (int64_t i = Vec::kLanes; i < kGroupColumns; i += Vec::kLanes) sum = sum + Vec::load(x + i);
  return sum.sum();
}

template <class Math, class T, int kM>
BRIAR_INLINE void pack_tile(const T* x, int64_t stride, int64_t m, bool with_sums,
                            const PackedInput& to) {
  float* out = to.x + m * to.steps;
  for (int64_t step = 0; step < to.steps; ++step) {
    for (int i = 0; i < kM; ++i) out[step * kM + i] = step_bits<Math>(x + i * stride, step);
  }
  if (!with_sums) return;
  float* sums = to.sums + m * to.num_groups;
  for (int64_t g = 0; g < to.num_groups; ++g) {
    for (int i = 0; i < kM; ++i) {
      sums[g * kM + i] = group_sum(x + i * stride + g * kGroupColumns);
    }
  }
}

template <class Math, class T>
void pack_input(ThreadPool& pool, const QuantizedLinearArgs& a, const PackedInput& to) {
  const int64_t num_tokens = a.x.size(0), stride = a.x.stride(0);
  const bool with_sums = has_mins(a.format);
  const auto* x = static_cast<const T*>(a.x.data());
  auto task = [&](int64_t tile) {
    int64_t m = tile * kTileTokens;
    const int64_t end = m + kTileTokens < num_tokens ? m + kTileTokens : num_tokens;
    while (m < end) {
      const int tokens = tile_tokens(end - m);
      const T* from = x + m * stride;
      switch (tokens) {
        case 4: pack_tile<Math, T, 4>(from, stride, m, with_sums, to); break;
        case 2: pack_tile<Math, T, 2>(from, stride, m, with_sums, to); break;
        case 1: pack_tile<Math, T, 1>(from, stride, m, with_sums, to); break;
        default: pack_tile<Math, T, kTileTokens>(from, stride, m, with_sums, to);
      }
      m += tokens;
    }
  };
  const int64_t num_tiles = (num_tokens + kTileTokens - 1) / kTileTokens;
  if (num_tokens * a.x.size(1) <= kSerialWeights) {
    for (int64_t tile = 0; tile < num_tiles; ++tile) task(tile);
  } else {
    pool.run(num_tiles, task);
  }
}

// Where finished rows go: bias, rounding, and the rows that there really are.
struct Output {
  void* data;
  int64_t stride;
  int64_t num_rows;
  bool is_bf16;
  const void* bias;
  bool bias_is_bf16;

  template <class T>
  BRIAR_INLINE static Vec load(const T* p, int lanes) {
    return lanes == Vec::kLanes ? Vec::load(p) : Vec::load_first(p, lanes);
  }
  template <class T>
  BRIAR_INLINE static void store(T* p, int lanes, Vec value) {
    lanes == Vec::kLanes ? value.store(p) : value.store_first(p, lanes);
  }
  // Register `vec` of the rows, of token m; registers beyond the last row are dropped.
  BRIAR_INLINE void store(int64_t m, int64_t vec, Vec value) const {
    const int64_t n = vec * Vec::kLanes;
    if (n >= num_rows) return;
    const int lanes = num_rows - n < Vec::kLanes ? static_cast<int>(num_rows - n) : Vec::kLanes;
    if (bias != nullptr) {
      value = value + (bias_is_bf16 ? load(static_cast<const Bf16*>(bias) + n, lanes)
                                    : load(static_cast<const float*>(bias) + n, lanes));
    }
    if (is_bf16) {
      store(static_cast<Bf16*>(data) + m * stride + n, lanes, value);
    } else {
      store(static_cast<float*>(data) + m * stride + n, lanes, value);
    }
  }
};

template <class Math, BlockFormat kFormat>
struct Product {
  using Rows = PackedRows<Math, kFormat>;
  const uint8_t* packed;
  int64_t panel_stride;
  int64_t num_panels;
  int64_t num_groups;
  PackedInput input;
  Output out;

  // A register beyond the last panel repeats the last one; Output drops it.
  BRIAR_INLINE Rows rows(int64_t vec) const {
    const int64_t last = num_panels * kVecsPerPanel - 1;
    const int64_t v = vec < last ? vec : last;
    return {packed + v / kVecsPerPanel * panel_stride, v % kVecsPerPanel * Vec::kLanes};
  }

  // kM tokens from m on times registers [begin, end).
  template <int kM, int kVecs>
  BRIAR_INLINE void tiles(int64_t m, int64_t begin, int64_t end) const {
    const TileInput in = input.tile(m);
    for (int64_t vec = begin; vec < end; vec += kVecs) {
      Rows tile[kVecs];
      for (int v = 0; v < kVecs; ++v) tile[v] = rows(vec + v);
      Vec sums[kM][kVecs];
      for (int i = 0; i < kM; ++i) {
        for (int v = 0; v < kVecs; ++v) sums[i][v] = Vec::zero();
      }
      multiply_tile<Math, kFormat>(tile, in, num_groups, sums);
      for (int i = 0; i < kM; ++i) {
        for (int v = 0; v < kVecs; ++v) out.store(m + i, vec + v, sums[i][v]);
      }
    }
  }
  void task(int64_t num_tokens, int64_t begin, int64_t end) const {
    for (int64_t m = 0; m < num_tokens;) {
      const int tokens = tile_tokens(num_tokens - m);
      switch (tokens) {
        case 4: tiles<4, 2>(m, begin, end); break;
        case 2: tiles<2, 2>(m, begin, end); break;
        case 1: tiles<1, 4>(m, begin, end); break;
        default: tiles<kTileTokens, 2>(m, begin, end);
      }
      m += tokens;
    }
  }

  void run(ThreadPool& pool, int64_t num_tokens) const {
    const int64_t num_vecs = num_panels * kVecsPerPanel;
    // Whole tiles of four registers; enough tasks to even out the threads.
    int64_t step = num_vecs / (pool.num_threads() * 4);
    const int64_t most = kMaxTaskBytes / (panel_stride + 1) * kVecsPerPanel;
    step = (step < most ? step : most) / 4 * 4;
    if (step < 4) step = 4;
    const int64_t num_tasks = (num_vecs + step - 1) / step;
    auto run_task = [&](int64_t i) {
      const int64_t end = (i + 1) * step < num_vecs ? (i + 1) * step : num_vecs;
      task(num_tokens, i * step, end);
    };
    if (num_tokens * out.num_rows * num_groups * kGroupColumns <= kSerialWeights) {
      for (int64_t i = 0; i < num_tasks; ++i) run_task(i);
    } else {
      pool.run(num_tasks, run_task);
    }
  }
};

template <class Math, BlockFormat kFormat>
void run_format(ThreadPool& pool, const QuantizedLinearArgs& a, const PackedInput& input) {
  const int64_t n = a.out.size(1);
  const bool has_bias = static_cast<bool>(a.bias);
  const Product<Math, kFormat> product{
      .packed = static_cast<const uint8_t*>(a.weight.data()),
      .panel_stride =
          input.num_groups / packed_block(kFormat).num_groups * packed_block(kFormat).bytes(),
      .num_panels = (n + kPanelRows - 1) / kPanelRows,
      .num_groups = input.num_groups,
      .input = input,
      .out = {.data = a.out.data(),
              .stride = a.out.stride(0),
              .num_rows = n,
              .is_bf16 = a.out.dtype() == DType::kBf16,
              .bias = has_bias ? a.bias.data() : nullptr,
              .bias_is_bf16 = has_bias && a.bias.dtype() == DType::kBf16}};
  product.run(pool, a.x.size(0));
}

template <class Math, class T>
void run_math(ThreadPool& pool, const QuantizedLinearArgs& a) {
  const int64_t num_tokens = a.x.size(0), k = a.x.size(1);
  PackedInput input{.num_groups = k / kGroupColumns, .steps = k / Math::kColumns};
  const int64_t x_floats = num_tokens * input.steps;
  auto* scratch =
      static_cast<float*>(allocate_scratch((x_floats + num_tokens * input.num_groups) * 4));
  input.x = scratch;
  input.sums = scratch + x_floats;
  pack_input<Math, T>(pool, a, input);
  switch (a.format) {
    case BlockFormat::kQ8_0: run_format<Math, BlockFormat::kQ8_0>(pool, a, input); break;
    case BlockFormat::kQ4_0: run_format<Math, BlockFormat::kQ4_0>(pool, a, input); break;
    case BlockFormat::kQ4_1: run_format<Math, BlockFormat::kQ4_1>(pool, a, input); break;
    case BlockFormat::kQ4_K: run_format<Math, BlockFormat::kQ4_K>(pool, a, input); break;
    case BlockFormat::kQ6_K: run_format<Math, BlockFormat::kQ6_K>(pool, a, input); break;
  }
  __builtin_free(scratch);
}

}  // namespace

void quantized_product(ThreadPool& pool, const QuantizedLinearArgs& a) {
  if (a.out.size(0) == 0 || a.out.size(1) == 0) return;
  if (a.x.dtype() == DType::kFp32) return run_math<Fp32Math, float>(pool, a);
#if defined(__AVX512BF16__)
  run_math<Bf16Math, Bf16>(pool, a);
#else
  run_math<Fp32Math, Bf16>(pool, a);
#endif
}

}  // namespace briar::BRIAR_ISA
