// Rules over single tokens, on top of a request's grammar if it has one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "briar/engine.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// Words that are not to be written. Each is kept out in the two ways it is usually tokenised: as it
// stands and behind a space. Tokens that spell it in another way stay possible.
class BadWords {
 public:
  BadWords(const Tokenizer& tokenizer, const std::vector<std::string>& words);

  // `inner` (or null) with the words kept out too. Where nothing would be left, they are allowed.
  std::shared_ptr<TokenConstraint> add_to(std::shared_ptr<TokenConstraint> inner) const;

 private:
  std::shared_ptr<const std::vector<std::vector<int32_t>>> sequences_;  // null: no words
};

// At most `budget` tokens of reasoning: then its message is ended, and no further one is begun. The
// model goes on with an answer or a call, whichever it likes. `parser` reads the answer from its
// beginning. Where `inner` (or null) leaves no other way, it wins.
std::shared_ptr<TokenConstraint> limit_reasoning(int64_t budget, const ReasoningGate& gate,
                                                 std::unique_ptr<StreamParser> parser,
                                                 std::shared_ptr<TokenConstraint> inner);

}  // namespace briar
