// One attention problem, laid out in a paged cache and run in calls of any size. Shared by the test
// files of attention.
#pragma once

#include <optional>
#include <vector>

#include "device/dtype.h"
#include "device/tensor.h"
#include "kernels/test/compare.h"
#include "kernels/test/test_tensor.h"

namespace briar::attention_test {

struct Sequence {
  int64_t context;  // tokens in the cache at the end, the queries included
  int64_t queries;
};

struct Case {
  std::vector<Sequence> sequences = {{200, 200}};
  int64_t q_heads = 8, kv_heads = 1, dim = 64;
  int window = 0;
  std::optional<float> sink = {};  // every head's; absent = no sinks
  DType q_dtype = DType::kBf16, kv_dtype = DType::kBf16;
  Pattern pattern = Pattern::kNormal;
  double q_scale = 1;
  // How it is run: none of these may change a bit of the result.
  int64_t page_size = 16;
  int64_t chunk = 0;  // queries of each sequence a call; 0 = all
  int64_t gap = 0;
  int threads = 2;
};

// What the model computes: q, k, v of every sequence side by side.
struct Problem {
  explicit Problem(const Case& c);
  std::vector<double> reference(const Case& c) const;

  TestTensor q;      // [all queries, q_heads, dim]
  TestTensor k, v;   // [all keys, kv_heads, dim]
  TestTensor sinks;  // [q_heads]
};

// The result [all queries, q_heads, dim]. Everything that no query of a call can see is poisoned:
// NaN in keys and values, -1 or a huge id in the page table.
TestTensor run(const Case& c, const Problem& p);

// Runs and compares with the reference.
void check(const Case& c, const Problem& p, const char* name, Tolerance tolerance);
void check(const Case& c);

Tolerance default_tolerance(DType dtype);

}  // namespace briar::attention_test
