#include "server/api/bad_words.h"

#include <algorithm>
#include <utility>

namespace briar {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;

class BadWordConstraint final : public TokenConstraint {
 public:
  BadWordConstraint(std::shared_ptr<const Sequences> sequences,
                    std::shared_ptr<TokenConstraint> inner)
      : sequences_(std::move(sequences)), inner_(std::move(inner)) {}

  void fill_mask(std::span<uint32_t> mask) override {
    if (inner_) {
      inner_->fill_mask(mask);
    } else {
      std::fill(mask.begin(), mask.end(), ~uint32_t{0});
    }
    for (const auto& sequence : *sequences_) {
      if (!is_one_away(sequence)) continue;
      const auto id = static_cast<size_t>(sequence.back());
      if (id / 32 < mask.size()) mask[id / 32] &= ~(uint32_t{1} << id % 32);
    }
  }

  void accept(int32_t token_id) override {
    if (inner_) inner_->accept(token_id);
    answer_.push_back(token_id);
  }

 private:
  // Whether the answer ends in all ids of the sequence but its last.
  bool is_one_away(const std::vector<int32_t>& sequence) const {
    const size_t size = sequence.size() - 1;
    return answer_.size() >= size && std::equal(sequence.begin(), sequence.end() - 1,
                                                answer_.end() - static_cast<long>(size));
  }

  const std::shared_ptr<const Sequences> sequences_;
  const std::shared_ptr<TokenConstraint> inner_;
  std::vector<int32_t> answer_;
};

}  // namespace

BadWords::BadWords(const Tokenizer& tokenizer, const std::vector<std::string>& words) {
  if (words.empty()) return;
  auto sequences = std::make_shared<Sequences>();
  for (const std::string& word : words) {
    for (const char* before : {"", " "}) {
      auto ids = tokenizer.encode(before + word);
      if (!ids.empty()) sequences->push_back(std::move(ids));
    }
  }
  sequences_ = std::move(sequences);
}

std::shared_ptr<TokenConstraint> BadWords::add_to(
    std::shared_ptr<TokenConstraint> constraint) const {
  if (!sequences_) return constraint;
  return std::make_shared<BadWordConstraint>(sequences_, std::move(constraint));
}

}  // namespace briar
