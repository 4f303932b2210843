// What a GGUF file says of its tokenizer (its keys tokenizer.ggml.*), as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace briar {

struct GgufVocabulary {
  enum TokenType : int32_t {  // as in the files
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6,
  };

  std::string model = {};  // .model: "gpt2" (byte-level BPE) or "llama" (SentencePiece)
  std::string pre = {};    // .pre: names the split of "gpt2"; may be empty for "llama"
  std::vector<std::string> tokens = {};   // .tokens, by id
  std::vector<int32_t> token_types = {};  // .token_type, by id; empty: all are normal
  std::vector<std::string> merges = {};   // .merges: "left right", lowest rank first; of "gpt2"
  std::vector<float> scores = {};         // .scores, by id, highest first; of "llama"
  std::optional<int32_t> bos_id = {};     // .bos_token_id
  std::optional<bool> adds_bos = {};      // .add_bos_token; absent: as the model and `pre` imply
  std::optional<bool> adds_space_prefix = {};  // .add_space_prefix; absent: yes for "llama"
};

}  // namespace briar
