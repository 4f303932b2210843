#include "server/api/token_rules.h"

#include <gtest/gtest.h>

#include "server/api/test_support.h"

namespace briar {
namespace {

constexpr size_t kMaskWords = 201088 / 32;

std::vector<uint32_t> mask_of(TokenConstraint& constraint) {
  std::vector<uint32_t> mask(kMaskWords);
  constraint.fill_mask(mask);
  return mask;
}

bool allows(TokenConstraint& constraint, int32_t id) {
  const auto mask = mask_of(constraint);
  return (mask[static_cast<size_t>(id) / 32] >> id % 32 & 1) != 0;
}

int64_t count(TokenConstraint& constraint) {
  int64_t n = 0;
  for (const uint32_t word : mask_of(constraint)) n += __builtin_popcount(word);
  return n;
}

// Allows one id alone.
class OnlyOne final : public TokenConstraint {
 public:
  explicit OnlyOne(int32_t id) : id_(id) {}
  void fill_mask(std::span<uint32_t> mask) override {
    std::fill(mask.begin(), mask.end(), 0);
    mask[static_cast<size_t>(id_) / 32] = uint32_t{1} << id_ % 32;
  }
  void accept(int32_t) override { ++num_accepted; }
  int num_accepted = 0;

 private:
  const int32_t id_;
};

TEST(BadWords, OneTokenIsNeverAllowed) {
  const BadWords words(*tokenizer(), {"hello"});
  const auto rule = words.add_to(nullptr);
  EXPECT_FALSE(allows(*rule, ids_of("hello").front()));
  EXPECT_FALSE(allows(*rule, ids_of(" hello").front()));
  EXPECT_TRUE(allows(*rule, ids_of("Hello").front()));
}

TEST(BadWords, OnlyTheLastOfSeveralTokensIsForbidden) {
  const std::vector<int32_t> ids = ids_of("supercalifragilistic");
  ASSERT_GT(ids.size(), 2u);
  const auto rule = BadWords(*tokenizer(), {"supercalifragilistic"}).add_to(nullptr);
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    EXPECT_TRUE(allows(*rule, ids[i])) << i;
    EXPECT_TRUE(i == 0 || allows(*rule, ids.back()));
    rule->accept(ids[i]);
  }
  EXPECT_FALSE(allows(*rule, ids.back()));
  rule->accept(ids[0]);
  EXPECT_TRUE(allows(*rule, ids.back()));
}

TEST(BadWords, AGrammarWins) {
  const int32_t id = ids_of("hello").front();
  auto inner = std::make_shared<OnlyOne>(id);
  const auto rule = BadWords(*tokenizer(), {"hello"}).add_to(inner);
  EXPECT_TRUE(allows(*rule, id));
  EXPECT_EQ(count(*rule), 1);
  rule->accept(id);
  EXPECT_EQ(inner->num_accepted, 1);
  EXPECT_EQ(BadWords(*tokenizer(), {}).add_to(inner), inner);
}

TEST(LimitReasoning, EndsTheMessageAndBeginsNoOther) {
  const auto format = *make_format("harmony", tokenizer());
  const auto rule = limit_reasoning(2, *format->reasoning_gate(), format->make_parser({}), nullptr);
  const int32_t analysis = ids_of("analysis").front();
  const int32_t end = ids_of("<|end|>").front();
  const auto accept = [&](const std::string& text) {
    for (const int32_t id : ids_of(text)) rule->accept(id);
  };
  accept("<|channel|>");
  EXPECT_TRUE(allows(*rule, analysis));
  accept("analysis<|message|>one");
  EXPECT_GT(count(*rule), 1000);
  accept(" two");
  EXPECT_EQ(count(*rule), 1);
  EXPECT_TRUE(allows(*rule, end));
  accept("<|end|><|start|>assistant");
  EXPECT_GT(count(*rule), 1000);
  accept("<|channel|>");
  EXPECT_FALSE(allows(*rule, analysis));
  EXPECT_TRUE(allows(*rule, ids_of("final").front()));
  accept("final<|message|>any");
  EXPECT_GT(count(*rule), 1000);
}

}  // namespace
}  // namespace briar
