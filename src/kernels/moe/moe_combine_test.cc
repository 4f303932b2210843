#include "kernels/moe/moe_combine.h"

#include <limits>
#include <numeric>

#include "kernels/moe/moe_combine_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(MoeCombineTest);

constexpr Tolerance kTolerance{2.5e-7, 2.5e-7, 1e-7};

struct Case {
  Case(int64_t num_tokens, int64_t choices, int64_t hidden_size, int64_t gap = 0,
       Pattern pattern = Pattern::kNormal)
      : choices(choices),
        hidden_size(hidden_size),
        rows(DType::kFp32, {num_tokens * choices, hidden_size}, gap),
        row_of(DType::kInt32, {num_tokens, choices}),
        weights(DType::kFp32, {num_tokens, choices}),
        out(DType::kFp32, {num_tokens, hidden_size}, gap) {
    fill_random(rows, 1, 1, pattern);
    fill_random(weights, 2);
    // Any permutation of the rows: i -> i * step mod n with a step that shares no factor with n.
    const int64_t n = row_of.size();
    int64_t step = n / 3 + 1;
    while (std::gcd(step, n) != 1) ++step;
    for (int64_t i = 0; i < n; ++i) row_of.set(i, static_cast<double>(i * step % n));
  }
  void run(int threads = 2) {
    moe_combine(test_stream(threads), {rows.view(), row_of.view(), weights.view(), out.view()});
  }
  void check() {
    SCOPED_TRACE(testing::Message() << out.view().describe() << " choices " << choices);
    run();
    const auto ref =
        moe_combine_ref(rows.values(), row_of.ints(), weights.values(),
                        static_cast<size_t>(choices), static_cast<size_t>(hidden_size));
    EXPECT_TRUE(matches("moe_combine", out.values(), ref, kTolerance));
    EXPECT_TRUE(out.guards_intact());
  }
  int64_t choices, hidden_size;
  TestTensor rows, row_of, weights, out;
};

TEST_P(MoeCombineTest, Sizes) {
  for (const int64_t hidden_size : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 61, 192, 2880}) {
    for (const int64_t num_tokens : {0, 1, 2, 13}) {
      for (const int64_t choices : {1, 2, 4, 8}) {
        Case(num_tokens, choices, hidden_size).check();
        Case(num_tokens, choices, hidden_size, 3).check();
      }
    }
  }
}

TEST_P(MoeCombineTest, Patterns) {
  for (const Pattern pattern : kPatterns) Case(5, 4, 2880, 1, pattern).check();
}

TEST_P(MoeCombineTest, InfinityAndNanReachTheirTokenOnly) {
  for (const float special :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Case c(5, 4, 61);
    c.rows.set(7 * 61 + 60, special);
    c.rows.set(9 * 61 + 3, special);
    c.check();
  }
}

TEST_P(MoeCombineTest, SameBitsAloneInABatchAndOnAnyThreads) {
  Case first(37, 4, 2880);
  first.run(1);
  for (const int threads : {1, 2, 3}) {
    Case c(37, 4, 2880);
    c.run(threads);
    EXPECT_EQ(c.out.bits(), first.out.bits()) << threads << " threads";
  }
  for (const int64_t token : {0, 19, 36}) {
    Case one(1, 4, 2880);
    for (int64_t c = 0; c < 4; ++c) {
      one.row_of.set(c, static_cast<double>(c));
      one.weights.set(c, first.weights.get(token * 4 + c));
      one.rows.copy_row(c, first.rows, first.row_of.get_int(token * 4 + c));
    }
    one.run();
    EXPECT_EQ(one.out.bits(), first.out.row_bits(token, token + 1)) << "token " << token;
  }
}

}  // namespace
}  // namespace briar
