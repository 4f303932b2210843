#include "kernels/router/router.h"

#include <limits>
#include <set>

#include "kernels/router/router_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(RouterTest);

constexpr Tolerance kFp32{4e-7, 1e-7, 2e-7};
constexpr Tolerance kBf16{0x1p-8, 1e-7, 2e-3};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Routed {
  Routed(const TestTensor& logits, int64_t k, bool round_to_bf16, int threads = 2)
      : ids(DType::kInt32, {logits.num_rows(), k}), weights(DType::kFp32, {logits.num_rows(), k}) {
    router(test_stream(threads), {logits.view(), ids.view(), weights.view(), round_to_bf16});
    EXPECT_TRUE(ids.guards_intact() && weights.guards_intact());
  }
  TestTensor ids, weights;
};

void check(const TestTensor& logits, int64_t k) {
  SCOPED_TRACE(testing::Message() << logits.view().describe() << " top " << k);
  const std::vector<float> values = logits.values();
  std::vector<int32_t> ids;
  std::vector<double> weights;
  const auto num_experts = static_cast<size_t>(logits.view().size(1));
  for (size_t row = 0; row < static_cast<size_t>(logits.num_rows()); ++row) {
    const Routing r = router_ref(std::span(values).subspan(row * num_experts, num_experts),
                                 static_cast<size_t>(k));
    ids.insert(ids.end(), r.ids.begin(), r.ids.end());
    weights.insert(weights.end(), r.weights.begin(), r.weights.end());
  }
  const Routed fp32(logits, k, false), bf16(logits, k, true);
  EXPECT_EQ(fp32.ids.ints(), ids);
  EXPECT_EQ(bf16.ids.ints(), ids);
  EXPECT_TRUE(matches("router fp32", fp32.weights.values(), weights, kFp32));
  EXPECT_TRUE(matches("router bf16", bf16.weights.values(), weights, kBf16));
  for (int64_t i = 0; i < bf16.weights.size(); ++i) {
    const float rounded = to_float(to_bf16(fp32.weights.get(i)));
    EXPECT_TRUE(std::isnan(rounded) || bf16.weights.get(i) == rounded) << i;
  }
}

TEST_P(RouterTest, SizesAndPatterns) {
  for (const int64_t num_experts : {1, 2, 7, 8, 9, 15, 16, 17, 32, 61, 128}) {
    for (const int64_t k : {1, 2, 4, 8}) {
      if (k > num_experts) continue;
      for (const int64_t num_tokens : {0, 1, 2, 131}) {
        for (const Pattern pattern : kPatterns) {
          TestTensor logits(DType::kFp32, {num_tokens, num_experts}, k % 2 * 3);
          fill_random(logits, 1, 2, pattern);
          check(logits, k);
        }
      }
    }
  }
}

TEST_P(RouterTest, TiesGoToTheLowerId) {
  TestTensor logits(DType::kFp32, {3, 32});
  for (int64_t i = 0; i < 32; ++i) {
    logits.set(i, static_cast<double>(i % 3));                  // many ties at 2
    logits.set(32 + i, i < 5 ? 1 : i == 20 || i == 9 ? 2 : 0);  // ties at the edge of the choice
    logits.set(64 + i, i % 2 == 0 ? 0.0 : -0.0);                // zeros of both signs are equal
  }
  const Routed run(logits, 4, true);
  EXPECT_EQ(run.ids.ints(), (std::vector<int32_t>{2, 5, 8, 11, 9, 20, 0, 1, 0, 1, 2, 3}));
  check(logits, 4);
}

TEST_P(RouterTest, MaskedAndInfiniteLogits) {
  TestTensor logits(DType::kFp32, {4, 32});
  fill_random(logits, 3);
  logits.set(4, -kInf);
  for (int64_t i = 0; i < 29; ++i) logits.set(32 + i, -kInf);  // fewer finite ones than choices
  logits.set(64 + 7, kInf);
  for (int64_t i = 0; i < 32; ++i) logits.set(96 + i, -kInf);
  check(logits, 4);
}

// The ids index arrays: whatever the logits, they are distinct experts that exist.
TEST_P(RouterTest, NanGivesNanWeightsAndValidIds) {
  for (const int64_t at : {0, 5, 31}) {
    TestTensor logits(DType::kFp32, {3, 32});
    fill_random(logits, 4);
    logits.set(32 + at, kNan);
    for (int64_t i = 0; i < 32; ++i) logits.set(64 + i, kNan);
    const Routed run(logits, 4, true);
    for (int64_t row = 0; row < 3; ++row) {
      std::set<int32_t> distinct;
      for (int64_t c = 0; c < 4; ++c) {
        const int32_t id = run.ids.get_int(row * 4 + c);
        EXPECT_TRUE(id >= 0 && id < 32) << id;
        distinct.insert(id);
        EXPECT_EQ(std::isnan(run.weights.get(row * 4 + c)), row > 0) << row << " NaN at " << at;
      }
      EXPECT_EQ(distinct.size(), 4u);
    }
  }
}

TEST_P(RouterTest, SameBitsAloneInABatchAndOnAnyThreads) {
  TestTensor logits(DType::kFp32, {203, 32});
  fill_random(logits, 5);
  const Routed first(logits, 4, false, 1);
  for (const int threads : {2, 3}) {
    const Routed run(logits, 4, false, threads);
    EXPECT_EQ(run.weights.bits(), first.weights.bits());
    EXPECT_EQ(run.ids.bits(), first.ids.bits());
  }
  for (const int64_t row : {0, 100, 202}) {
    TestTensor one(DType::kFp32, {1, 32});
    one.copy_row(0, logits, row);
    EXPECT_EQ(Routed(one, 4, false).weights.bits(), first.weights.row_bits(row, row + 1));
  }
}

}  // namespace
}  // namespace briar
