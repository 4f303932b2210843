// What an assistant's turn in Harmony may look like, after the <|start|>assistant that ends the
// prompt:
//
//   turn     = { prelude } last
//   prelude  = "<|channel|>analysis<|message|>" text "<|end|>" next
//            | "<|channel|>commentary<|message|>" text "<|end|>" next         a preamble
//   next     = "<|start|>assistant"
//   last     = "<|channel|>final" ["_<|constrain|>json"] "<|message|>" answer "<|return|>"
//            | recipient "<|channel|>commentary" type "<|message|>" arguments "<|call|>"
//            | "<|channel|>commentary" recipient type "<|message|>" arguments "<|call|>"
//   recipient = "_to=functions." name                                 _ stands for a space
//   type      = "" | "_json" | "_<|constrain|>json" | "<|constrain|>json"
//
// At most kMaxPreludes of them: a turn comes to its end. A preamble is part of what the user reads,
// so there is none beside an answer that must follow a grammar.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/harmony_tokens.h"
#include "grammar/grammar.h"
#include "grammar/header_graph.h"
#include "grammar/text_grammar.h"
#include "grammar/vocabulary_index.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// One request's grammar.
struct HarmonyTurn {
  static constexpr int kMaxPreludes = 8;

  struct Call {
    std::string name;
    std::shared_ptr<const TextGrammar> arguments;
  };
  std::vector<Call> calls = {};
  bool has_final = true;  // an answer may come
  bool is_json = false;   // the answer is JSON, and its header may say so
  bool has_preamble = false;
  std::shared_ptr<const TextGrammar> answer = {};  // null: any text
};

// What constraints of one model share.
struct HarmonyVocabulary {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const VocabularyIndex> index;
  HarmonyTokens tokens;
};

std::unique_ptr<GrammarConstraint> make_harmony_constraint(
    std::shared_ptr<const HarmonyVocabulary> vocabulary, HarmonyTurn turn);

}  // namespace briar
