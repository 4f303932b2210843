// From the lists of a file to a BpeModel.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokenizer/bpe.h"

namespace briar {

struct BpeLists {
  std::vector<std::string> tokens;  // bytes by id; empty: not an ordinary token
  std::vector<uint8_t> is_hidden;   // by id, or empty: no text becomes this token (VocabularyRules)
  // Pairs of tokens, lowest rank first.
  std::vector<std::pair<std::string, std::string>> merges;
  // By id, or empty: instead of `merges`, any two whose concatenation is a token join, the one of
  // the highest score first, of the lower id on ties.
  std::vector<float> scores;
  bool takes_tokens_whole = false;  // a piece that is a token becomes it without merging
  // As in BpeModel.
  bool has_character_symbols = false;
  std::array<int32_t, 256> byte_fallback_ids = BpeModel::no_byte_ids();
  int32_t unknown_id = kNoToken;
  bool fuses_unknown = true;
};

// `source` names the file in errors: a token that occurs twice, a merge that is not two tokens that
// make a third.
Result<BpeModel> build_bpe(BpeLists lists, std::string_view source);

}  // namespace briar
