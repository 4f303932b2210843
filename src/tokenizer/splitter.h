// How a tokenizer cuts a text: one or several splits, each within the pieces of the one before.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/regex_split.h"
#include "tokenizer/split.h"

namespace briar {

class Splitter {
 public:
  // No step: the whole text is one piece.
  Splitter() = default;

  bool is_empty() const { return steps_.empty(); }
  void add(PieceEnd piece_end) { steps_.push_back({.piece_end = piece_end, .regex = nullptr}); }
  // Scanned by hand if it is one of the patterns of split.h.
  Status add_regex(std::string_view pattern);

  // Calls `take(piece)` for each piece of a text, from left to right.
  template <class Take>
  void split(std::string_view text, Take&& take) const {
    if (steps_.size() == 1 && steps_[0].regex == nullptr) {  // nearly all tokenizers
      const PieceEnd piece_end = steps_[0].piece_end;
      const char* const end = text.data() + text.size();
      for (const char* p = text.data(); p < end;) {
        const char* const next = piece_end(p, end);
        take(std::string_view(p, static_cast<size_t>(next - p)));
        p = next;
      }
      return;
    }
    split_from(0, text, take);
  }

 private:
  struct Step {
    PieceEnd piece_end;  // unless there is a regex
    std::shared_ptr<const RegexSplit> regex;
  };

  template <class Take>
  void split_from(size_t step_idx, std::string_view text, Take& take) const {
    if (text.empty()) return;
    if (step_idx == steps_.size()) return take(text);
    const Step& step = steps_[step_idx];
    if (step.regex != nullptr) {
      RegexPieces pieces(*step.regex, text);
      for (auto piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
        split_from(step_idx + 1, piece, take);
      }
      return;
    }
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const char* const next = step.piece_end(p, end);
      split_from(step_idx + 1, {p, static_cast<size_t>(next - p)}, take);
      p = next;
    }
  }

  std::vector<Step> steps_;
};

}  // namespace briar
