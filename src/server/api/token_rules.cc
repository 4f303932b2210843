#include "server/api/token_rules.h"

#include <algorithm>
#include <utility>

namespace briar {
namespace {

using Sequences = std::vector<std::vector<int32_t>>;

void forbid(std::span<uint32_t> mask, int32_t id) {
  const auto bit = static_cast<size_t>(id);
  if (bit / 32 < mask.size()) mask[bit / 32] &= ~(uint32_t{1} << bit % 32);
}

bool allows(std::span<const uint32_t> mask, int32_t id) {
  const auto bit = static_cast<size_t>(id);
  return bit / 32 < mask.size() && (mask[bit / 32] >> bit % 32 & 1) != 0;
}

// A rule that takes ids away from what another constraint, or nothing, allows.
class Narrowing : public TokenConstraint {
 public:
  explicit Narrowing(std::shared_ptr<TokenConstraint> inner) : inner_(std::move(inner)) {}

  void fill_mask(std::span<uint32_t> mask) final {
    if (inner_) {
      inner_->fill_mask(mask);
    } else {
      std::fill(mask.begin(), mask.end(), ~uint32_t{0});
    }
    whole_.assign(mask.begin(), mask.end());
    narrow(mask);
    const bool is_empty = std::all_of(mask.begin(), mask.end(), [](uint32_t m) { return m == 0; });
    if (is_empty) std::copy(whole_.begin(), whole_.end(), mask.begin());
  }

  void accept(int32_t token_id) final {
    if (inner_) inner_->accept(token_id);
    take(token_id);
  }

 protected:
  virtual void narrow(std::span<uint32_t> mask) = 0;
  virtual void take(int32_t token_id) = 0;

 private:
  const std::shared_ptr<TokenConstraint> inner_;
  std::vector<uint32_t> whole_;
};

class BadWordRule final : public Narrowing {
 public:
  BadWordRule(std::shared_ptr<const Sequences> sequences, std::shared_ptr<TokenConstraint> inner)
      : Narrowing(std::move(inner)), sequences_(std::move(sequences)) {}

 protected:
  void narrow(std::span<uint32_t> mask) override {
    for (const auto& sequence : *sequences_) {
      if (is_one_away(sequence)) forbid(mask, sequence.back());
    }
  }
  void take(int32_t token_id) override { answer_.push_back(token_id); }

 private:
  // Whether the answer ends in all ids of the sequence but its last.
  bool is_one_away(const std::vector<int32_t>& sequence) const {
    const size_t size = sequence.size() - 1;
    return answer_.size() >= size && std::equal(sequence.begin(), sequence.end() - 1,
                                                answer_.end() - static_cast<std::ptrdiff_t>(size));
  }

  const std::shared_ptr<const Sequences> sequences_;
  std::vector<int32_t> answer_;
};

class ReasoningRule final : public Narrowing {
 public:
  ReasoningRule(int64_t budget, const ReasoningGate& gate, std::unique_ptr<StreamParser> parser,
                std::shared_ptr<TokenConstraint> inner)
      : Narrowing(std::move(inner)), left_(budget), gate_(gate), parser_(std::move(parser)) {}

 protected:
  void narrow(std::span<uint32_t> mask) override {
    if (left_ > 0) return;
    if (latest_ == gate_.channel_id) forbid(mask, gate_.reasoning_id);
    if (!is_reasoning() || !allows(mask, gate_.end_id)) return;
    std::fill(mask.begin(), mask.end(), 0);
    mask[static_cast<size_t>(gate_.end_id) / 32] = uint32_t{1} << gate_.end_id % 32;
  }

  void take(int32_t token_id) override {
    const bool was_reasoning = is_reasoning();
    deltas_.clear();
    parser_->push(token_id, deltas_);
    if (was_reasoning && is_reasoning()) --left_;
    latest_ = token_id;
  }

 private:
  bool is_reasoning() const { return parser_->open_kind() == Delta::Kind::kReasoning; }

  int64_t left_;
  const ReasoningGate gate_;
  const std::unique_ptr<StreamParser> parser_;
  std::vector<Delta> deltas_;
  int32_t latest_ = -1;
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

std::shared_ptr<TokenConstraint> BadWords::add_to(std::shared_ptr<TokenConstraint> inner) const {
  if (!sequences_) return inner;
  return std::make_shared<BadWordRule>(sequences_, std::move(inner));
}

std::shared_ptr<TokenConstraint> limit_reasoning(int64_t budget, const ReasoningGate& gate,
                                                 std::unique_ptr<StreamParser> parser,
                                                 std::shared_ptr<TokenConstraint> inner) {
  return std::make_shared<ReasoningRule>(budget, gate, std::move(parser), std::move(inner));
}

}  // namespace briar
