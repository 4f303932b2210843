// Paged attention on the CPU, FlashAttention's online softmax (Dao, "FlashAttention-2", 2023) over
// blocks of 64 keys.
//
// A task is one KV head of up to kTokensPerTask consecutive tokens of one sequence. Per block of
// keys the task gathers K and V through the page table into fp32 scratch once and uses them for all
// its query heads. Scratch of a task: K and V 2 x 64 x head_dim, one accumulator row a (token,
// head), all fp32: 48 KB at head_dim 64 and 8 heads a group, which stays in the L2 cache.
//
// Decode is bound by reading K and V once; prefill by the FMAs of q.k and p.v.
#include "base/thread_pool.h"
#include "kernels/attention/attention.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/vec.h"

namespace briar::BRIAR_ISA {
namespace {

constexpr int64_t kBlock = 64;  // keys; a multiple of the lanes
constexpr int64_t kTokensPerTask = 8;

struct Task {
  int64_t seq;
  int64_t first_token;  // row of q
  int64_t num_tokens;
  int64_t position;  // of the first token
  int64_t kv_head;
};

// Running state of one (token, query head).
struct Row {
  float max;   // largest logit so far; the head's sink before the first block
  float sum;   // of exp(logit - max); the sink's own 1 before the first block
  float* acc;  // [head_dim] sum of exp(logit - max) * v
  const float* q;
};

template <class T>
BRIAR_INLINE void widen_row(const T* from, float* to, int64_t n) {
  for_lanes(
      n, [&](int64_t i) { Vec::load(from + i).store(to + i); },
      [&](int64_t i, int lanes) { Vec::load_first(from + i, lanes).store_first(to + i, lanes); });
}

// Gathers keys and values of positions [begin, end) of one head.
template <class Kv>
void gather(const AttentionArgs& a, const Task& t, int64_t begin, int64_t end, float* k, float* v) {
  const int64_t page_size = a.k_cache.size(1), num_kv_heads = a.k_cache.size(2);
  const int64_t head_dim = a.k_cache.size(3);
  const auto* k_cache = static_cast<const Kv*>(a.k_cache.data());
  const auto* v_cache = static_cast<const Kv*>(a.v_cache.data());
  const auto* table =
      static_cast<const int32_t*>(a.page_table.data()) + t.seq * a.page_table.stride(0);
  for (int64_t j = begin; j < end; ++j, k += head_dim, v += head_dim) {
    const int64_t slot = int64_t{table[j / page_size]} * page_size + j % page_size;
    const int64_t at = (slot * num_kv_heads + t.kv_head) * head_dim;
    widen_row(k_cache + at, k, head_dim);
    widen_row(v_cache + at, v, head_dim);
  }
}

// logits[j] = scale * q . k[j] for n keys.
BRIAR_INLINE void dot_keys(const float* q, const float* k, int64_t n, int64_t head_dim, float scale,
                           float* logits) {
  for (int64_t j = 0; j < n; j += 4) {
    const float* rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = k + (j + i < n ? j + i : n - 1) * head_dim;
    Vec acc[4] = {Vec::zero(), Vec::zero(), Vec::zero(), Vec::zero()};
    for_lanes(
        head_dim,
        [&](int64_t at) {
          const Vec x = Vec::load(q + at);
          for (int i = 0; i < 4; ++i) acc[i] = fma(x, Vec::load(rows[i] + at), acc[i]);
        },
        [&](int64_t at, int lanes) {
          const Vec x = Vec::load_first(q + at, lanes);
          for (int i = 0; i < 4; ++i) acc[i] = fma(x, Vec::load_first(rows[i] + at, lanes), acc[i]);
        });
    _mm_storeu_ps(logits + j, _mm_mul_ps(sum4(acc[0], acc[1], acc[2], acc[3]), _mm_set1_ps(scale)));
  }
}

// acc = acc * rescale + sum over keys [lo, hi) of p[j] * v[j], kWide registers of head_dim at a
// time so that the chains of FMAs overlap.
template <int kWide>
BRIAR_INLINE void weigh_registers(float* acc, float rescale, const float* p, const float* v,
                                  int64_t lo, int64_t hi, int64_t head_dim) {
  Vec sums[kWide];
  for (int i = 0; i < kWide; ++i) sums[i] = Vec::load(acc + i * Vec::kLanes) * Vec::all(rescale);
  for (int64_t j = lo; j < hi; ++j) {
    const Vec weight = Vec::all(p[j]);
    const float* row = v + j * head_dim;
    for (int i = 0; i < kWide; ++i)
      sums[i] = fma(weight, Vec::load(row + i * Vec::kLanes), sums[i]);
  }
  for (int i = 0; i < kWide; ++i) sums[i].store(acc + i * Vec::kLanes);
}

BRIAR_INLINE void weigh_values(float* acc, float rescale, const float* p, const float* v,
                               int64_t lo, int64_t hi, int64_t head_dim) {
  int64_t at = 0;
  for (; at + 4 * Vec::kLanes <= head_dim; at += 4 * Vec::kLanes) {
    weigh_registers<4>(acc + at, rescale, p, v + at, lo, hi, head_dim);
  }
  for (; at + Vec::kLanes <= head_dim; at += Vec::kLanes) {
    weigh_registers<1>(acc + at, rescale, p, v + at, lo, hi, head_dim);
  }
  if (at == head_dim) return;
  const int lanes = static_cast<int>(head_dim - at);
  Vec sum = Vec::load_first(acc + at, lanes) * Vec::all(rescale);
  for (int64_t j = lo; j < hi; ++j) {
    sum = fma(Vec::all(p[j]), Vec::load_first(v + j * head_dim + at, lanes), sum);
  }
  sum.store_first(acc + at, lanes);
}

// Takes keys [lo, hi) of the gathered block into the row's state. Masked keys of the block get
// weight 0 and are added as such, so that the sums run over whole registers in a fixed order.
void absorb_block(Row& row, const float* k, const float* v, int64_t lo, int64_t hi,
                  int64_t head_dim, float scale) {
  alignas(64) float p[kBlock + 4];
  dot_keys(row.q, k + lo * head_dim, hi - lo, head_dim, scale, p + lo);
  float block_max = p[lo];
  for (int64_t j = lo + 1; j < hi; ++j) block_max = p[j] > block_max ? p[j] : block_max;
  const float new_max = block_max > row.max ? block_max : row.max;
  // While every logit is -inf (and there is no sink) nothing has a weight: exp(-inf - 0) = 0.
  const float shift = new_max == -__builtin_inff() ? 0.f : new_max;
  for (int64_t j = 0; j < lo; ++j) p[j] = -__builtin_inff();
  for (int64_t j = hi; j < kBlock; ++j) p[j] = -__builtin_inff();
  Vec total = Vec::zero();
  for (int64_t j = 0; j < kBlock; j += Vec::kLanes) {
    const Vec weight = exp(Vec::load(p + j) - Vec::all(shift));
    weight.store(p + j);
    total = total + weight;
  }
  alignas(64) float rescale_lanes[Vec::kLanes];
  exp(Vec::all(row.max - shift)).store(rescale_lanes);
  const float rescale = rescale_lanes[0];
  row.sum = row.sum * rescale + total.sum();
  row.max = new_max;
  weigh_values(row.acc, rescale, p, v, lo, hi, head_dim);
}

template <class T>
void write_row(const Row& row, T* out, int64_t head_dim) {
  const Vec inv_sum = Vec::all(1.f / row.sum);
  for_lanes(
      head_dim, [&](int64_t i) { (Vec::load(row.acc + i) * inv_sum).store(out + i); },
      [&](int64_t i, int n) {
        (Vec::load_first(row.acc + i, n) * inv_sum).store_first(out + i, n);
      });
}

struct Scratch {
  float* k;    // [kBlock, head_dim]
  float* v;    // [kBlock, head_dim]
  float* q;    // [kTokensPerTask * group, head_dim]
  float* acc;  // like q
  Row* rows;   // [kTokensPerTask * group]
};

template <class T, class Kv>
void run_task(const AttentionArgs& a, const Task& t, const Scratch& s) {
  const int64_t head_dim = a.q.size(2), group = a.q.size(1) / a.k_cache.size(2);
  const auto* q = static_cast<const T*>(a.q.data());
  const float* sinks = a.sinks ? static_cast<const float*>(a.sinks.data()) : nullptr;
  const int64_t num_rows = t.num_tokens * group;
  for (int64_t r = 0; r < num_rows; ++r) {
    const int64_t token = t.first_token + r / group, head = t.kv_head * group + r % group;
    widen_row(q + token * a.q.stride(0) + head * a.q.stride(1), s.q + r * head_dim, head_dim);
    for (int64_t i = 0; i < head_dim; ++i) s.acc[r * head_dim + i] = 0.f;
    s.rows[r] = {.max = sinks != nullptr ? sinks[head] : -__builtin_inff(),
                 .sum = sinks != nullptr ? 1.f : 0.f,
                 .acc = s.acc + r * head_dim,
                 .q = s.q + r * head_dim};
  }
  const int64_t last = t.position + t.num_tokens - 1;
  auto first_visible = [&](int64_t position) {
    const int64_t first = a.window == 0 ? 0 : position - a.window + 1;
    return first > 0 ? first : 0;
  };
  for (int64_t block = first_visible(t.position) / kBlock * kBlock; block <= last;
       block += kBlock) {
    const int64_t begin = block > first_visible(t.position) ? block : first_visible(t.position);
    const int64_t end = block + kBlock < last + 1 ? block + kBlock : last + 1;
    const int64_t skipped = (begin - block) * head_dim;
    gather<Kv>(a, t, begin, end, s.k + skipped, s.v + skipped);
    for (int64_t r = 0; r < num_rows; ++r) {
      const int64_t position = t.position + r / group;
      const int64_t first = first_visible(position);
      const int64_t lo = first > block ? first - block : 0;
      const int64_t hi = position + 1 - block < end - block ? position + 1 - block : end - block;
      if (lo < hi) absorb_block(s.rows[r], s.k, s.v, lo, hi, head_dim, a.scale);
    }
  }
  auto* out = static_cast<T*>(a.out.data());
  for (int64_t r = 0; r < num_rows; ++r) {
    const int64_t token = t.first_token + r / group, head = t.kv_head * group + r % group;
    write_row(s.rows[r], out + token * a.out.stride(0) + head * a.out.stride(1), head_dim);
  }
}

template <class T, class Kv>
void run(ThreadPool& pool, const AttentionArgs& a) {
  const int64_t num_seqs = a.seq_lens.size(0), num_kv_heads = a.k_cache.size(2);
  const int64_t head_dim = a.q.size(2), group = a.q.size(1) / num_kv_heads;
  const auto* cu = static_cast<const int32_t*>(a.cu_seqlens_q.data());
  const auto* lens = static_cast<const int32_t*>(a.seq_lens.data());
  int64_t num_tiles = 0;
  for (int64_t seq = 0; seq < num_seqs; ++seq) {
    num_tiles += (cu[seq + 1] - cu[seq] + kTokensPerTask - 1) / kTokensPerTask;
  }
  auto* tasks = static_cast<Task*>(
      allocate_scratch(static_cast<size_t>(num_tiles * num_kv_heads + 1) * sizeof(Task)));
  int64_t num_tasks = 0;
  // Longest first: the last tokens of a long prefill see the most keys.
  for (int64_t seq = 0; seq < num_seqs; ++seq) {
    const int64_t num_new = cu[seq + 1] - cu[seq];
    const int64_t tiles = (num_new + kTokensPerTask - 1) / kTokensPerTask;
    for (int64_t tile = tiles - 1; tile >= 0; --tile) {
      const int64_t begin = tile * kTokensPerTask;
      const int64_t count = num_new - begin < kTokensPerTask ? num_new - begin : kTokensPerTask;
      for (int64_t head = 0; head < num_kv_heads; ++head) {
        tasks[num_tasks++] = {seq, cu[seq] + begin, count, lens[seq] - num_new + begin, head};
      }
    }
  }
  auto body = [&](int64_t i) {
    const int64_t rows = kTokensPerTask * group;
    const int64_t floats = (2 * kBlock + 2 * rows) * head_dim;
    auto* memory = static_cast<float*>(allocate_scratch(
        static_cast<size_t>(floats) * sizeof(float) + static_cast<size_t>(rows) * sizeof(Row)));
    const Scratch scratch{.k = memory,
                          .v = memory + kBlock * head_dim,
                          .q = memory + 2 * kBlock * head_dim,
                          .acc = memory + (2 * kBlock + rows) * head_dim,
                          .rows = reinterpret_cast<Row*>(memory + floats)};
    run_task<T, Kv>(a, tasks[i], scratch);
    __builtin_free(memory);
  };
  pool.run(num_tasks, body);
  __builtin_free(tasks);
}

template <class T>
void run_kv(ThreadPool& pool, const AttentionArgs& a) {
  if (a.k_cache.dtype() == DType::kBf16) {
    run<T, Bf16>(pool, a);
  } else {
    run<T, float>(pool, a);
  }
}

}  // namespace

void attention(ThreadPool& pool, const AttentionArgs& a) {
  if (a.q.dtype() == DType::kBf16) {
    run_kv<Bf16>(pool, a);
  } else {
    run_kv<float>(pool, a);
  }
}

}  // namespace briar::BRIAR_ISA
