#include "grammar/plain_constraint.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "grammar/constraint_mask.h"

namespace briar {
namespace {

class PlainConstraint final : public GrammarConstraint {
 public:
  PlainConstraint(std::shared_ptr<const VocabularyIndex> vocabulary, std::vector<int32_t> stop_ids,
                  std::shared_ptr<const TextGrammar> answer)
      : vocabulary_(std::move(vocabulary)),
        stop_ids_(std::move(stop_ids)),
        answer_(std::move(answer)),
        stops_(vocabulary_->num_words()),
        text_(vocabulary_->ordinary().begin(), vocabulary_->ordinary().end()),
        mask_(vocabulary_->num_words()) {
    if (answer_) matcher_ = answer_->make_matcher(stop_ids_);
    for (const int32_t id : stop_ids_) {
      set_bit(stops_, id);
      set_bit(text_, id);
    }
  }

  void fill_mask(std::span<uint32_t> mask) override {
    if (is_finished()) return copy_mask(stops_, mask);
    if (!matcher_) return copy_mask(text_, mask);
    matcher_->fill_mask(mask_);
    copy_mask(mask_, mask);
  }

  void accept(int32_t token_id) override {
    if (is_finished()) {
      ++num_after_stop_;
      return;
    }
    const bool is_stop = std::find(stop_ids_.begin(), stop_ids_.end(), token_id) != stop_ids_.end();
    if (matcher_) CHECK(matcher_->accept(token_id), "token {} was not allowed", token_id);
    ++num_accepted_;
    if (is_stop) num_after_stop_ = 1;
  }

  bool is_finished() const override { return num_after_stop_ > 0; }

  void roll_back(int64_t num_tokens) override {
    // The first of the tokens after the stop is the stop itself, which the matcher has seen.
    while (num_tokens > 0 && num_after_stop_ > 1) {
      --num_after_stop_;
      --num_tokens;
    }
    CHECK_LE(num_tokens, num_accepted_, "more than was accepted");
    if (num_tokens == 0) return;
    num_after_stop_ = 0;
    num_accepted_ -= num_tokens;
    if (matcher_) matcher_->roll_back(num_tokens);
  }

 private:
  const std::shared_ptr<const VocabularyIndex> vocabulary_;
  const std::vector<int32_t> stop_ids_;
  const std::shared_ptr<const TextGrammar> answer_;
  std::vector<uint32_t> stops_;
  std::vector<uint32_t> text_;
  std::vector<uint32_t> mask_;
  std::unique_ptr<TextMatcher> matcher_;
  int64_t num_accepted_ = 0;
  int64_t num_after_stop_ = 0;  // counts the stop itself
};

}  // namespace

std::unique_ptr<GrammarConstraint> make_plain_constraint(
    std::shared_ptr<const VocabularyIndex> vocabulary, std::vector<int32_t> stop_ids,
    std::shared_ptr<const TextGrammar> answer) {
  return std::make_unique<PlainConstraint>(std::move(vocabulary), std::move(stop_ids),
                                           std::move(answer));
}

}  // namespace briar
