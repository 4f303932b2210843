// D[m, n] = sum over k of A[m, k] * B[n, k] (+ bias[n]), weights row-major as checkpoints store
// them.
//
// Work is cut into tasks of up to kMaxTaskBytes of weight rows: each weight is read from memory
// once per task however many tokens there are. Inside, a register tile of kTileM x kTileN dot
// products runs along k, the dimension that is contiguous in both operands. Every dot product is
// one accumulator register filled in the order of k, reduced by the same tree: its bits depend on k
// alone, not on the tile, the batch or the number of threads (docs/numerics.md, "batch
// invariance").
//
// Bound: memory bandwidth for few tokens (2 bytes a weight, 0.53 for MXFP4), FMA throughput for
// many.
#include "kernels/linear/linear_cpu.h"

#include "base/thread_pool.h"
#include "kernels/cpu/vec.h"

namespace briar::BRIAR_ISA {
namespace {

constexpr int kTileN = 4;
constexpr int kTileM =
    Vec::kLanes == 16 ? 4 : 2;  // 16 or 8 accumulators: what the register file holds
constexpr int64_t kMaxTaskBytes =
    384 * 1024;  // of weights: with many tokens they are read again from the L2 cache
constexpr int64_t kMinRowsPerTask = 8;
// Products smaller than this many weights run on the calling thread: handing out tasks costs more.
constexpr int64_t kSerialWeights = 24 * 1024;

// With few tokens the weights come from memory, and the hardware's prefetchers lose sight of them
// at every row and task: fetching this far ahead nearly doubles the bandwidth.
constexpr int64_t kPrefetchBytes = 4096;

// Weights that are stored as numbers; row(n).lanes(k) gives the lanes that start at k.
template <class T>
struct DenseWeights {
  const T* data;
  int64_t k;

  struct Row {
    const T* p;
    BRIAR_INLINE Vec lanes(int64_t at) const { return Vec::load(p + at); }
    BRIAR_INLINE Vec first_lanes(int64_t at, int n) const { return Vec::load_first(p + at, n); }
    BRIAR_INLINE void prefetch(int64_t at) const {
      _mm_prefetch(reinterpret_cast<const char*>(p + at) + kPrefetchBytes, _MM_HINT_T0);
    }
  };
  BRIAR_INLINE Row row(int64_t n) const { return {data + n * k}; }
};

// The 16 E2M1 values as fp32; a block's 32 weights are these times 2^(scale - 127), exactly.
struct Mxfp4Weights {
  const uint8_t* data;
  const uint8_t* scales;
  int64_t k;

  struct Row {
    const uint8_t* p;
    const uint8_t* s;
    BRIAR_INLINE Vec lanes(int64_t at) const {
      const uint32_t scale_bits = s[at / 32] == 0 ? 0x00400000u : uint32_t{s[at / 32]} << 23;
      const Vec scale = Vec::all(std::bit_cast<float>(scale_bits));
#if defined(__AVX512F__)
      // 8 bytes hold 16 weights, low nibble first.
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + at / 2));
      const __m128i mask = _mm_set1_epi8(15);
      const __m128i nibbles = _mm_unpacklo_epi8(_mm_and_si128(bytes, mask),
                                                _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
      const __m512 table = _mm512_setr_ps(0.f, 0.5f, 1.f, 1.5f, 2.f, 3.f, 4.f, 6.f, -0.f, -0.5f,
                                          -1.f, -1.5f, -2.f, -3.f, -4.f, -6.f);
      return Vec{_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(nibbles), table)} * scale;
#else
      // 4 bytes hold 8 weights; their upper fp32 halves come from two byte tables.
      int32_t word;
      __builtin_memcpy(&word, p + at / 2, 4);
      const __m128i bytes = _mm_cvtsi32_si128(word);
      const __m128i mask = _mm_set1_epi8(15);
      const __m128i nibbles = _mm_unpacklo_epi8(_mm_and_si128(bytes, mask),
                                                _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
      const __m128i high = _mm_setr_epi8(0, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40, -128, -65,
                                         -65, -65, -64, -64, -64, -64);
      const __m128i low =
          _mm_setr_epi8(0, 0, -128, -64, 0, 0x40, -128, -64, 0, 0, -128, -64, 0, 0x40, -128, -64);
      const __m128i halves =
          _mm_unpacklo_epi8(_mm_shuffle_epi8(low, nibbles), _mm_shuffle_epi8(high, nibbles));
      return Vec::widen(halves) * scale;
#endif
    }
    BRIAR_INLINE void prefetch(int64_t at) const {
      _mm_prefetch(reinterpret_cast<const char*>(p + at / 2) + kPrefetchBytes, _MM_HINT_T0);
    }
    // k is a multiple of 32: there are no partial steps.
    BRIAR_INLINE Vec first_lanes(int64_t, int) const { return Vec::zero(); }
  };
  BRIAR_INLINE Row row(int64_t n) const { return {data + n * (k / 2), scales + n * (k / 32)}; }
};

// kM x kTileN dot products of fp32 rows x[i] with weight rows n0 ... into sums[i].
template <int kM, class Weights>
BRIAR_INLINE void dot_tile(const float* const (&x)[kM], const Weights& weights, int64_t k,
                           const int64_t (&n)[kTileN], __m128 (&sums)[kM]) {
  Vec acc[kM][kTileN];
  typename Weights::Row rows[kTileN];
  for (int j = 0; j < kTileN; ++j) rows[j] = weights.row(n[j]);
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kTileN; ++j) acc[i][j] = Vec::zero();
  }
  for_lanes(
      k,
      [&](int64_t at) {
        Vec w[kTileN];
        for (int j = 0; j < kTileN; ++j) w[j] = rows[j].lanes(at);
        if constexpr (kM == 1) {
          for (int j = 0; j < kTileN; ++j) rows[j].prefetch(at);
        }
        for (int i = 0; i < kM; ++i) {
          const Vec a = Vec::load(x[i] + at);
          for (int j = 0; j < kTileN; ++j) acc[i][j] = fma(a, w[j], acc[i][j]);
        }
      },
      [&](int64_t at, int lanes) {
        for (int i = 0; i < kM; ++i) {
          const Vec a = Vec::load_first(x[i] + at, lanes);
          for (int j = 0; j < kTileN; ++j) {
            acc[i][j] = fma(a, rows[j].first_lanes(at, lanes), acc[i][j]);
          }
        }
      });
  for (int i = 0; i < kM; ++i) sums[i] = sum4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}

// Where a finished tile goes: bias, rounding, and the rows that the tile really has.
struct Output {
  void* data;      // first row of this group
  int64_t stride;  // elements
  bool is_bf16;
  const void* bias;  // of this group, or nullptr
  bool bias_is_bf16;

  BRIAR_INLINE void store(int64_t m, int64_t n, int count, __m128 sums) const {
    if (count == kTileN && bias == nullptr && !is_bf16) {
      _mm_storeu_ps(static_cast<float*>(data) + m * stride + n, sums);
      return;
    }
    alignas(16) float values[4];
    _mm_store_ps(values, sums);
    for (int j = 0; j < count; ++j) {
      float value = values[j];
      if (bias != nullptr) {
        value += bias_is_bf16 ? to_float(static_cast<const Bf16*>(bias)[n + j])
                              : static_cast<const float*>(bias)[n + j];
      }
      if (is_bf16) {
        static_cast<Bf16*>(data)[m * stride + n + j] = to_bf16(value);
      } else {
        static_cast<float*>(data)[m * stride + n + j] = value;
      }
    }
  }
};

template <int kM, class Weights>
BRIAR_INLINE void product_rows(const float* const* x, int64_t m, const Weights& weights, int64_t k,
                               int64_t n_begin, int64_t n_end, const Output& out) {
  const float* rows[kM];
  for (int i = 0; i < kM; ++i) rows[i] = x[m + i];
  for (int64_t n = n_begin; n < n_end; n += kTileN) {
    const int count = n_end - n < kTileN ? static_cast<int>(n_end - n) : kTileN;
    // A tile that hangs over the edge repeats its last row and drops the result.
    int64_t index[kTileN];
    for (int j = 0; j < kTileN; ++j) index[j] = n + (j < count ? j : count - 1);
    __m128 sums[kM];
    dot_tile<kM>(rows, weights, k, index, sums);
    for (int i = 0; i < kM; ++i) out.store(m + i, n, count, sums[i]);
  }
}

template <class Weights>
void product(const float* const* x, int64_t num_rows, const Weights& weights, int64_t k,
             int64_t n_begin, int64_t n_end, const Output& out) {
  int64_t m = 0;
  for (; m + kTileM <= num_rows; m += kTileM) {
    product_rows<kTileM>(x, m, weights, k, n_begin, n_end, out);
  }
  for (; m < num_rows; ++m) product_rows<1>(x, m, weights, k, n_begin, n_end, out);
}

void product_task(const GroupedProduct& a, int64_t group, const float* const* x, int64_t num_rows,
                  int64_t n_begin, int64_t n_end) {
  const int64_t n = a.weight.size(1), k = a.weight.size(2);
  const int64_t first = a.row_offsets[group];
  const bool has_bias = static_cast<bool>(a.bias);
  const bool out_is_bf16 = a.out.dtype() == DType::kBf16;
  Output out{
      .data = static_cast<char*>(a.out.data()) + first * a.out.stride(0) * (out_is_bf16 ? 2 : 4),
      .stride = a.out.stride(0),
      .is_bf16 = out_is_bf16,
      .bias = nullptr,
      .bias_is_bf16 = has_bias && a.bias.dtype() == DType::kBf16};
  if (has_bias) {
    out.bias = static_cast<const char*>(a.bias.data()) + group * n * (out.bias_is_bf16 ? 2 : 4);
  }
  const auto* bytes = static_cast<const uint8_t*>(a.weight.data());
  switch (a.weight.dtype()) {
    case DType::kBf16: {
      const DenseWeights<Bf16> w{reinterpret_cast<const Bf16*>(bytes) + group * n * k, k};
      return product(x, num_rows, w, k, n_begin, n_end, out);
    }
    case DType::kFp32: {
      const DenseWeights<float> w{reinterpret_cast<const float*>(bytes) + group * n * k, k};
      return product(x, num_rows, w, k, n_begin, n_end, out);
    }
    default: {
      const auto* scales = static_cast<const uint8_t*>(a.scales.data());
      const Mxfp4Weights w{bytes + group * n * (k / 2), scales + group * n * (k / 32), k};
      return product(x, num_rows, w, k, n_begin, n_end, out);
    }
  }
}

}  // namespace

// x as fp32 rows: fp32 input is used in place, bf16 input is widened once per call.
struct Fp32Rows {
  float* storage = nullptr;
  const float** rows = nullptr;

  Fp32Rows(ThreadPool& pool, const GroupedProduct& a, int64_t num_rows) {
    const int64_t k = a.weight.size(2), stride = a.x.stride(0);
    rows = static_cast<const float**>(
        allocate_scratch(static_cast<size_t>(num_rows + 1) * sizeof(float*)));
    if (a.x.dtype() == DType::kFp32) {
      const auto* x = static_cast<const float*>(a.x.data());
      for (int64_t i = 0; i < num_rows; ++i) rows[i] = x + source_row(a, i) * stride;
      return;
    }
    storage = static_cast<float*>(
        allocate_scratch(static_cast<size_t>(num_rows * k + 1) * sizeof(float)));
    const auto* x = static_cast<const Bf16*>(a.x.data());
    pool.for_ranges(num_rows, 4096 / (k + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Bf16* from = x + source_row(a, i) * stride;
        float* to = storage + i * k;
        for_lanes(
            k, [&](int64_t at) { Vec::load(from + at).store(to + at); },
            [&](int64_t at, int n) { Vec::load_first(from + at, n).store_first(to + at, n); });
        rows[i] = to;
      }
    });
  }
  ~Fp32Rows() {
    __builtin_free(storage);
    __builtin_free(rows);
  }
  static int64_t source_row(const GroupedProduct& a, int64_t i) {
    return a.gather == nullptr ? i : a.gather[i];
  }
};

void grouped_product(ThreadPool& pool, const GroupedProduct& a) {
  const int64_t num_groups = a.weight.size(0), n = a.weight.size(1), k = a.weight.size(2);
  const int64_t num_rows = a.row_offsets[num_groups];
  if (num_rows == 0 || n == 0) return;
  const Fp32Rows x(pool, a, num_rows);
  // Groups without rows (most experts in a decode step) get no tasks.
  auto* active =
      static_cast<int32_t*>(allocate_scratch(static_cast<size_t>(num_groups) * sizeof(int32_t)));
  int64_t num_active = 0;
  for (int32_t group = 0; group < num_groups; ++group) {
    if (a.row_offsets[group + 1] > a.row_offsets[group]) active[num_active++] = group;
  }
  // Enough tasks to even out the threads, whole tiles each. How rows are cut never shows in the
  // result.
  const int64_t row_bytes = dtype_bytes(a.weight.dtype(), k) + 1;
  int64_t rows_per_task = num_active * n / (pool.num_threads() * 4);
  if (rows_per_task > kMaxTaskBytes / row_bytes) rows_per_task = kMaxTaskBytes / row_bytes;
  if (rows_per_task < kMinRowsPerTask) rows_per_task = kMinRowsPerTask;
  rows_per_task = rows_per_task / kTileN * kTileN;
  const int64_t blocks = (n + rows_per_task - 1) / rows_per_task;
  auto task = [&](int64_t i) {
    const int64_t group = active[i / blocks], begin = i % blocks * rows_per_task;
    const int64_t first = a.row_offsets[group], rows = a.row_offsets[group + 1] - first;
    const int64_t end = begin + rows_per_task < n ? begin + rows_per_task : n;
    product_task(a, group, x.rows + first, rows, begin, end);
  };
  const int64_t num_tasks = num_active * blocks;
  if (num_rows * n * k <= kSerialWeights) {
    for (int64_t i = 0; i < num_tasks; ++i) task(i);
  } else {
    pool.run(num_tasks, task);
  }
  __builtin_free(active);
}

}  // namespace briar::BRIAR_ISA
