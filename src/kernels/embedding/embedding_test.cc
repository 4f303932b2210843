#include "kernels/embedding/embedding.h"

#include <limits>

#include "kernels/embedding/embedding_ref.h"
#include "kernels/test/compare.h"
#include "kernels/test/isa_test.h"
#include "kernels/test/test_tensor.h"

namespace briar {
namespace {

BRIAR_TEST_EVERY_ISA(EmbeddingTest);

constexpr int64_t kVocab = 37;

void check(DType dtype, int64_t num_tokens, int64_t hidden_size, int64_t gap) {
  SCOPED_TRACE(testing::Message() << to_string(dtype) << " tokens " << num_tokens << " hidden "
                                  << hidden_size << " gap " << gap);
  TestTensor table(dtype, {kVocab, hidden_size}, gap);
  fill_random(table, 1);
  if (table.size() > 4) {
    table.set(3, std::numeric_limits<float>::infinity());
    table.set(4, std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<int32_t> ids = {0, kVocab - 1, 5, 5, 0, 36, 17, 1, 2, 3};
  ids.resize(static_cast<size_t>(num_tokens), 7);
  const TestTensor token_ids = int_tensor(ids);
  TestTensor out(DType::kFp32, {num_tokens, hidden_size}, gap);
  embedding(test_stream(), {token_ids.view(), table.view(), out.view()});
  EXPECT_TRUE(
      matches("embedding", out.values(), embedding_ref(ids, table.values(), hidden_size), kExact));
  EXPECT_TRUE(out.guards_intact());
}

TEST_P(EmbeddingTest, CopiesRowsExactly) {
  for (const DType dtype : {DType::kFp32, DType::kBf16}) {
    for (const int64_t hidden_size : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 61, 192, 2880}) {
      for (const int64_t num_tokens : {0, 1, 10, 133}) {
        check(dtype, num_tokens, hidden_size, 0);
        check(dtype, num_tokens, hidden_size, 5);
      }
    }
  }
}

}  // namespace
}  // namespace briar
