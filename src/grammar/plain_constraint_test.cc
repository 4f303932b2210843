// Constraints of formats without a header grammar.
#include "grammar/plain_constraint.h"

#include "grammar/test_walk.h"

namespace briar {
namespace {

using grammar_test::ids_of;
using grammar_test::special;
using grammar_test::tokenizer;

struct Fixture {
  std::shared_ptr<const VocabularyIndex> index = std::make_shared<VocabularyIndex>(*tokenizer());
  std::unique_ptr<TextGrammarCompiler> compiler =
      std::move(*TextGrammarCompiler::create(tokenizer(), index, {}));
  std::vector<int32_t> stops = {special("<|endoftext|>"), special("<|end|>")};
  std::vector<uint32_t> mask = std::vector<uint32_t>(index->num_words());
};

TEST(PlainConstraint, TheAnswerIsTheWholeTextAndAnyStopIdEndsIt) {
  Fixture f;
  auto grammar = f.compiler->compile({TextSource::Kind::kRegex, "(yes|no)"}, "answer");
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  auto constraint = make_plain_constraint(f.index, f.stops, *grammar);
  constraint->fill_mask(f.mask);
  const int32_t yes = tokenizer()->encode("yes").at(0);
  EXPECT_TRUE(has_bit(f.mask, yes));
  EXPECT_FALSE(has_bit(f.mask, f.stops[0]));
  constraint->accept(yes);
  constraint->fill_mask(f.mask);
  EXPECT_EQ(ids_of(f.mask), f.stops);
  constraint->accept(f.stops[1]);
  EXPECT_TRUE(constraint->is_finished());
  constraint->accept(f.stops[0]);  // ignore_eos
  constraint->fill_mask(f.mask);
  EXPECT_EQ(ids_of(f.mask), f.stops);
  constraint->roll_back(3);
  EXPECT_FALSE(constraint->is_finished());
  constraint->fill_mask(f.mask);
  EXPECT_TRUE(has_bit(f.mask, tokenizer()->encode("no").at(0)));
  EXPECT_FALSE(has_bit(f.mask, f.stops[0]));
}

TEST(PlainConstraint, FreeTextHasNoSpecialTokensButStops) {
  Fixture f;
  auto constraint = make_plain_constraint(f.index, f.stops, nullptr);
  constraint->fill_mask(f.mask);
  EXPECT_EQ(ids_of(f.mask).size(), 199998u + f.stops.size());
  EXPECT_FALSE(has_bit(f.mask, special("<|start|>")));
}

}  // namespace
}  // namespace briar
