// What the tests of constraints share: texts drawn at random under a mask.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "formats/registry.h"
#include "grammar/grammar.h"
#include "grammar/vocabulary_index.h"
#include "tokenizer/tokenizer.h"

namespace briar::grammar_test {

inline std::shared_ptr<const Tokenizer> tokenizer() { return Tokenizer::bundled_o200k_harmony(); }

inline std::shared_ptr<const Format> harmony() {
  static const auto format = make_format("harmony", tokenizer());
  return *format;
}

inline GrammarCompiler& compiler() {
  static const auto compiler = GrammarCompiler::create(harmony(), tokenizer());
  EXPECT_TRUE(compiler.ok());
  return **compiler;
}

inline std::vector<int32_t> ids_of(std::span<const uint32_t> mask) {
  std::vector<int32_t> ids;
  for (size_t word = 0; word < mask.size(); ++word) {
    for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
      ids.push_back(static_cast<int32_t>(word * 32) + std::countr_zero(bits));
    }
  }
  return ids;
}

inline int32_t special(std::string_view spelling) {
  return tokenizer()->special_id(spelling).value_or(-1);
}

struct Walk {
  std::vector<int32_t> ids;
  bool is_finished = false;
};

// Draws tokens until the constraint is finished. Uniform among the allowed ids, but tokens that
// bring a text nearer to its end are taken often, the more so the longer it is.
class Walker {
 public:
  explicit Walker(uint32_t seed) : random_(seed) {
    for (const char* text : {"\"", "}", "]", "0", ","}) {
      closing_.push_back(tokenizer()->encode(text).at(0));
    }
    for (const char* text : {"<|end|>", "<|return|>", "<|call|>"}) {
      closing_.push_back(special(text));
    }
    mask_.resize((static_cast<size_t>(tokenizer()->vocab_size()) + 31) / 32);
  }

  Walk run(GrammarConstraint& constraint, size_t max_tokens) {
    Walk walk;
    while (walk.ids.size() < max_tokens && !constraint.is_finished()) {
      constraint.fill_mask(mask_);
      const int32_t id = draw(walk.ids.size() > max_tokens / 2 ? 0.97 : 0.4);
      if (id < 0) {
        ADD_FAILURE() << "nothing is allowed after " << harmony()->text_of(walk.ids);
        return walk;
      }
      constraint.accept(id);
      walk.ids.push_back(id);
    }
    walk.is_finished = constraint.is_finished();
    return walk;
  }

  std::mt19937& random() { return random_; }

 private:
  int32_t draw(double closing_share) {
    if (std::uniform_real_distribution<>(0, 1)(random_) < closing_share) {
      std::vector<int32_t> allowed;
      for (const int32_t id : closing_) {
        if (has_bit(mask_, id)) allowed.push_back(id);
      }
      if (!allowed.empty()) return allowed[random_() % allowed.size()];
    }
    const auto allowed = ids_of(mask_);
    return allowed.empty() ? -1 : allowed[random_() % allowed.size()];
  }

  std::mt19937 random_;
  std::vector<int32_t> closing_;
  std::vector<uint32_t> mask_;
};

}  // namespace briar::grammar_test
