// A constraint on a text that nothing stands around: formats without a header grammar.
#pragma once

#include <memory>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/text_grammar.h"
#include "grammar/vocabulary_index.h"

namespace briar {

// `answer` null: any text of ordinary tokens.
std::unique_ptr<GrammarConstraint> make_plain_constraint(
    std::shared_ptr<const VocabularyIndex> vocabulary, std::vector<int32_t> stop_ids,
    std::shared_ptr<const TextGrammar> answer);

}  // namespace briar
