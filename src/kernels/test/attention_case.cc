#include "kernels/test/attention_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_ref.h"
#include "kernels/test/isa_test.h"

namespace briar::attention_test {
namespace {

int64_t total(const Case& c, int64_t Sequence::*field) {
  int64_t sum = 0;
  for (const Sequence& s : c.sequences) sum += s.*field;
  return sum;
}

float scale_of(const Case& c) { return 1.f / std::sqrt(static_cast<float>(c.dim)); }

// Queries [begin, end) of one sequence, and the keys that they may see.
struct Part {
  int64_t begin, end, first_key, num_keys;
};

Part part_of(const Case& c, const Sequence& s, int64_t call) {
  const int64_t chunk = c.chunk > 0 ? c.chunk : std::max<int64_t>(s.queries, 1);
  Part p;
  p.begin = std::min(s.queries, call * chunk);
  p.end = std::min(s.queries, p.begin + chunk);
  const int64_t first_query = s.context - s.queries + p.begin;
  p.first_key = c.window > 0 ? std::max<int64_t>(0, first_query - c.window + 1) : 0;
  p.num_keys = s.context - s.queries + p.end;
  return p;
}

// A cache that holds just the visible keys, in pages of scattered ids.
struct PagedCache {
  PagedCache(const Case& c, const Problem& p, const std::vector<Part>& parts)
      : pages_a_row(count_pages(c, parts) + 3),
        num_pages(static_cast<int64_t>(parts.size()) * pages_a_row),
        k(c.kv_dtype, {num_pages, c.page_size, c.kv_heads, c.dim}),
        v(c.kv_dtype, {num_pages, c.page_size, c.kv_heads, c.dim}),
        table(DType::kInt32, {static_cast<int64_t>(parts.size()), pages_a_row}) {
    int64_t step = num_pages / 2 + 1, key = 0;
    while (std::gcd(step, num_pages) != 1) ++step;
    for (int64_t i = 0; i < table.size(); ++i)
      table.set(i, i % 2 ? -1 : std::numeric_limits<int32_t>::max());
    for (size_t s = 0; s < parts.size(); key += c.sequences[s++].context) {
      for (int64_t j = parts[s].first_key; j < parts[s].num_keys && parts[s].end > parts[s].begin;
           ++j) {
        const int64_t entry = static_cast<int64_t>(s) * pages_a_row + j / c.page_size;
        const int64_t page = entry * step % num_pages;
        table.set(entry, static_cast<double>(page));
        for (int64_t h = 0; h < c.kv_heads; ++h) {
          const int64_t row = (page * c.page_size + j % c.page_size) * c.kv_heads + h;
          k.copy_row(row, p.k, (key + j) * c.kv_heads + h);
          v.copy_row(row, p.v, (key + j) * c.kv_heads + h);
        }
      }
    }
  }
  static int64_t count_pages(const Case& c, const std::vector<Part>& parts) {
    int64_t most = 0;
    for (const Part& part : parts) most = std::max(most, part.num_keys / c.page_size + 1);
    return most;
  }
  int64_t pages_a_row, num_pages;
  TestTensor k, v, table;  // unwritten elements are 0xff.., a NaN
};

void run_call(const Case& c, const Problem& p, int64_t call, TestTensor& result) {
  std::vector<Part> parts;
  std::vector<int32_t> cu_seqlens = {0}, seq_lens;
  for (const Sequence& s : c.sequences) {
    parts.push_back(part_of(c, s, call));
    cu_seqlens.push_back(cu_seqlens.back() +
                         static_cast<int32_t>(parts.back().end - parts.back().begin));
    seq_lens.push_back(static_cast<int32_t>(parts.back().num_keys));
  }
  const PagedCache cache(c, p, parts);
  TestTensor q(c.q_dtype, {cu_seqlens.back(), c.q_heads, c.dim}, c.gap);
  TestTensor out(c.q_dtype, {cu_seqlens.back(), c.q_heads, c.dim}, c.gap);
  const auto for_rows = [&](auto&& body) {  // row of the call, row of the whole problem
    int64_t first = 0;
    for (size_t s = 0; s < parts.size(); first += c.sequences[s++].queries) {
      for (int64_t i = 0; i < (parts[s].end - parts[s].begin) * c.q_heads; ++i) {
        body(cu_seqlens[s] * c.q_heads + i, (first + parts[s].begin) * c.q_heads + i);
      }
    }
  };
  for_rows([&](int64_t to, int64_t from) { q.copy_row(to, p.q, from); });
  const TestTensor cu = int_tensor(cu_seqlens), lens = int_tensor(seq_lens);
  attention(test_stream(c.threads),
            {q.view(), cache.k.view(), cache.v.view(), cache.table.view(), cu.view(), lens.view(),
             c.sink ? p.sinks.view() : TensorView(), out.view(), scale_of(c), c.window});
  EXPECT_TRUE(out.guards_intact());
  for_rows([&](int64_t from, int64_t to) { result.copy_row(to, out, from); });
}

}  // namespace

Problem::Problem(const Case& c)
    : q(c.q_dtype, {total(c, &Sequence::queries), c.q_heads, c.dim}),
      k(c.kv_dtype, {total(c, &Sequence::context), c.kv_heads, c.dim}),
      v(c.kv_dtype, {total(c, &Sequence::context), c.kv_heads, c.dim}),
      sinks(DType::kFp32, {c.q_heads}) {
  fill_random(q, 1, c.q_scale, c.pattern);
  fill_random(k, 2, 1, c.pattern);
  fill_random(v, 3, 1, c.pattern);
  for (int64_t h = 0; h < c.q_heads; ++h) sinks.set(h, c.sink.value_or(0));
}

std::vector<double> Problem::reference(const Case& c) const {
  const std::vector<float> q_all = q.values(), k_all = k.values(), v_all = v.values(),
                           sink = sinks.values();
  std::vector<double> ref;
  size_t query = 0, key = 0;
  for (const Sequence& s : c.sequences) {
    const auto num_q = static_cast<size_t>(s.queries * c.q_heads * c.dim);
    const auto num_k = static_cast<size_t>(s.context * c.kv_heads * c.dim);
    const auto part =
        attention_ref({std::span(q_all).subspan(query, num_q), std::span(k_all).subspan(key, num_k),
                       std::span(v_all).subspan(key, num_k),
                       c.sink ? std::span<const float>(sink) : std::span<const float>(), s.context,
                       c.q_heads, c.kv_heads, c.dim, c.window, scale_of(c)});
    ref.insert(ref.end(), part.begin(), part.end());
    query += num_q;
    key += num_k;
  }
  return ref;
}

TestTensor run(const Case& c, const Problem& p) {
  TestTensor result(c.q_dtype, {total(c, &Sequence::queries), c.q_heads, c.dim});
  int64_t calls = 1;
  for (const Sequence& s : c.sequences) {
    if (c.chunk > 0) calls = std::max(calls, (s.queries + c.chunk - 1) / c.chunk);
  }
  for (int64_t call = 0; call < calls; ++call) run_call(c, p, call, result);
  return result;
}

Tolerance default_tolerance(DType dtype) {
  return attention_tolerance(
      dtype == DType::kFp32 ? Tolerance{2e-6, 3e-7, 8e-8, 1} : Tolerance{0x1p-8, 1e-5, 2e-3},
      dtype);
}

void check(const Case& c, const Problem& p, const char* name, Tolerance tolerance) {
  SCOPED_TRACE(fmt::format(
      "{} sequences, first {} of {}; heads {}/{} of {}, window {}, sink {}, q {} kv {}, page {}",
      c.sequences.size(), c.sequences[0].queries, c.sequences[0].context, c.q_heads, c.kv_heads,
      c.dim, c.window, c.sink ? fmt::format("{}", *c.sink) : "none", to_string(c.q_dtype),
      to_string(c.kv_dtype), c.page_size));
  EXPECT_TRUE(matches(name, run(c, p).values(), p.reference(c), tolerance));
}

void check(const Case& c) {
  check(c, Problem(c), c.q_dtype == DType::kFp32 ? "attention fp32" : "attention bf16",
        default_tolerance(c.q_dtype));
}

}  // namespace briar::attention_test
