// Words that must not be sampled.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "briar/engine.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// Each word is kept out in the two ways it is usually tokenised: as it stands and behind a space.
// Tokens that spell it in another way stay possible.
class BadWords {
 public:
  BadWords(const Tokenizer& tokenizer, const std::vector<std::string>& words);

  // `constraint` (or null) with the words kept out too.
  std::shared_ptr<TokenConstraint> add_to(std::shared_ptr<TokenConstraint> constraint) const;

 private:
  std::shared_ptr<const std::vector<std::vector<int32_t>>> sequences_;  // null: no words
};

}  // namespace briar
