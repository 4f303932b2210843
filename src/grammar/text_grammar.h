// Grammars of a text without structure around it: XGrammar behind an interface of our own, with a
// cache, limits and containment. No other file knows XGrammar.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/grammar.h"
#include "grammar/vocabulary_index.h"
#include "tokenizer/tokenizer.h"

namespace briar {

struct TextSource {
  enum class Kind { kJsonSchema, kRegex, kEbnf, kStructuralTag };
  Kind kind = Kind::kJsonSchema;
  std::string text = {};
  bool operator==(const TextSource&) const = default;
};

// A text that grows token by token under a grammar.
class TextMatcher {
 public:
  virtual ~TextMatcher() = default;
  // `mask` has the vocabulary's num_words(). Stop ids are allowed where the text is complete. All
  // zero if XGrammar fails, which the engine turns into an error of the request.
  virtual void fill_mask(std::span<uint32_t> mask) = 0;
  virtual bool has_failed() const = 0;
  // False: the grammar does not allow this token.
  [[nodiscard]] virtual bool accept(int32_t token_id) = 0;
  virtual void roll_back(int64_t num_tokens) = 0;
};

// Compiled; may be shared by any number of matchers.
class TextGrammar {
 public:
  virtual ~TextGrammar() = default;
  virtual std::unique_ptr<TextMatcher> make_matcher(std::span<const int32_t> stop_ids) const = 0;
  virtual int64_t num_bytes() const = 0;
};

// Thread-safe.
class TextGrammarCompiler {
 public:
  static Result<std::unique_ptr<TextGrammarCompiler>> create(
      std::shared_ptr<const Tokenizer> tokenizer, std::shared_ptr<const VocabularyIndex> vocabulary,
      const GrammarOptions& options);
  virtual ~TextGrammarCompiler() = default;

  // `source` is within the limits of grammar_limits.h; a schema has passed check_schema(). `where`
  // names it in errors. Callers that ask for the same source at the same time wait for one
  // compilation.
  virtual Result<std::shared_ptr<const TextGrammar>> compile(const TextSource& source,
                                                             const std::string& where) = 0;
  virtual GrammarCacheStats cache_stats() const = 0;
};

}  // namespace briar
