#include "kernels/moe/moe_permute.h"

#include <gtest/gtest.h>

#include "kernels/moe/moe_permute_ref.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(MoePermuteTest);

void check(const std::vector<int32_t>& ids, int64_t choices, int32_t num_experts) {
  const int64_t num_rows = static_cast<int64_t>(ids.size()), num_tokens = num_rows / choices;
  SCOPED_TRACE(testing::Message() << num_tokens << " tokens " << choices << " choices "
                                  << num_experts << " experts");
  const TestTensor expert_ids = int_tensor(ids, {num_tokens, choices});
  TestTensor offsets(DType::kInt32, {num_experts + 1}), row_tokens(DType::kInt32, {num_rows}),
      row_of(DType::kInt32, {num_tokens, choices});
  moe_permute(test_stream(), {expert_ids.view(), offsets.view(), row_tokens.view(), row_of.view()});
  const MoePermutation ref = moe_permute_ref(ids, static_cast<size_t>(choices), num_experts);
  EXPECT_EQ(offsets.ints(), ref.row_offsets);
  EXPECT_EQ(row_tokens.ints(), ref.row_tokens);
  EXPECT_EQ(row_of.ints(), ref.row_of);
  EXPECT_TRUE(offsets.guards_intact() && row_tokens.guards_intact() && row_of.guards_intact());
}

// Distinct experts a token, as the router gives them.
std::vector<int32_t> random_experts(int64_t num_tokens, int64_t choices, int32_t num_experts) {
  std::vector<int32_t> ids;
  for (int64_t t = 0; t < num_tokens; ++t) {
    const uint64_t start = random_bits(9, static_cast<uint64_t>(t));
    for (int64_t c = 0; c < choices; ++c) {
      ids.push_back(static_cast<int32_t>((start + static_cast<uint64_t>(c)) %
                                         static_cast<uint64_t>(num_experts)));
    }
  }
  return ids;
}

TEST_P(MoePermuteTest, RandomRouting) {
  for (const int32_t num_experts : {1, 4, 7, 32, 128}) {
    for (const int64_t choices : {1, 2, 4}) {
      if (choices > num_experts) continue;
      for (const int64_t num_tokens : {0, 1, 2, 31, 1031}) {
        check(random_experts(num_tokens, choices, num_experts), choices, num_experts);
      }
    }
  }
}

TEST_P(MoePermuteTest, OneExpertGetsEverything) {
  for (const int32_t expert : {0, 5, 31}) check(std::vector<int32_t>(77, expert), 1, 32);
}

}  // namespace
}  // namespace briar
