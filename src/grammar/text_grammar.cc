#include "grammar/text_grammar.h"

#include <dlpack/dlpack.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <bit>
#include <random>
#include <stdexcept>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/log.h"
#include "grammar/compile_cache.h"
#include "grammar/json_white_space.h"
#include "grammar/xgrammar_budget.h"

namespace briar {
namespace {

// Recursion in XGrammar, which follows the nesting of rules: far below what a thread's stack holds.
constexpr int kMaxRecursion = 1000;
// A grammar that needs more than this for a mask, on average over a sample of texts, would hold up
// the engine's thread. Ordinary ones need 0.01 ms.
constexpr double kMaxMaskSeconds = 2e-3;
// What one mask may take; more, and the request ends with an error.
constexpr double kMaxOneMaskSeconds = 0.1;
constexpr int kNumSampleTexts = 4;
constexpr int kSampleTokens = 24;

// One line of plain ASCII out of what XGrammar says, which may quote the input.
std::string clean_message(std::string_view text) {
  constexpr std::string_view kCheck = ") is false: ";
  if (const size_t at = text.find(kCheck); text.starts_with("Check failed") && at != text.npos) {
    text.remove_prefix(at + kCheck.size());
  }
  constexpr size_t kMaxMessage = 240;
  std::string out(text.substr(0, kMaxMessage));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = c == '\n' ? ' ' : '?';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

class XgrammarMatcher final : public TextMatcher {
 public:
  XgrammarMatcher(const xgrammar::CompiledGrammar& grammar, std::span<const int32_t> stop_ids,
                  bool is_json, std::shared_ptr<const Tokenizer> tokenizer,
                  std::shared_ptr<const VocabularyIndex> vocabulary)
      : matcher_(grammar, std::vector<int>(stop_ids.begin(), stop_ids.end())),
        tokenizer_(std::move(tokenizer)),
        vocabulary_(std::move(vocabulary)),
        stop_ids_(stop_ids.begin(), stop_ids.end()),
        is_json_(is_json) {}

  void fill_mask(std::span<uint32_t> mask) override {
    CHECK_EQ(mask.size(), vocabulary_->num_words(), "a mask over the vocabulary");
    int64_t size = static_cast<int64_t>(mask.size());
    DLTensor tensor{};
    tensor.data = mask.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = {kDLInt, 32, 1};
    tensor.shape = &size;
    std::fill(mask.begin(), mask.end(), 0);
    if (has_failed_) return;
    try {
      const XgrammarBudget budget(kMaxOneMaskSeconds);
      matcher_.FillNextTokenBitmask(&tensor);
    } catch (const std::exception& e) {
      log_warning("a grammar's mask failed: {}", clean_message(e.what()));
      has_failed_ = true;
      std::fill(mask.begin(), mask.end(), 0);
      return;
    }
    const bool bans_space = is_json_ && white_space_.back().is_exhausted();
    keep_ordinary(mask, bans_space);
  }

  bool has_failed() const override { return has_failed_; }

  bool accept(int32_t token_id) override {
    if (has_failed_) return false;
    try {
      const XgrammarBudget budget(kMaxOneMaskSeconds);
      if (!matcher_.AcceptToken(token_id)) return false;
    } catch (const std::exception& e) {
      log_warning("a grammar failed at token {}: {}", token_id, clean_message(e.what()));
      has_failed_ = true;
      return false;
    }
    white_space_.push_back(white_space_.back());
    if (is_json_) white_space_.back().push(tokenizer_->token_bytes(token_id).value_or(""));
    return true;
  }

  void roll_back(int64_t num_tokens) override {
    CHECK_LT(num_tokens, static_cast<int64_t>(white_space_.size()), "more than was accepted");
    matcher_.Rollback(static_cast<int>(num_tokens));
    white_space_.resize(white_space_.size() - static_cast<size_t>(num_tokens));
  }

 private:
  // XGrammar's free text would allow special tokens.
  void keep_ordinary(std::span<uint32_t> mask, bool bans_space) const {
    std::vector<int32_t> stops;
    for (const int32_t id : stop_ids_) {
      if (has_bit(mask, id)) stops.push_back(id);
    }
    const auto ordinary = vocabulary_->ordinary();
    const auto space = vocabulary_->white_space();
    for (size_t i = 0; i < mask.size(); ++i) {
      mask[i] &= bans_space ? ordinary[i] & ~space[i] : ordinary[i];
    }
    for (const int32_t id : stops) set_bit(mask, id);
  }

  xgrammar::GrammarMatcher matcher_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::shared_ptr<const VocabularyIndex> vocabulary_;
  const std::vector<int32_t> stop_ids_;
  const bool is_json_;
  bool has_failed_ = false;                     // in the middle of its work: the state is lost
  std::vector<JsonWhiteSpace> white_space_{1};  // after each token
};

class XgrammarGrammar final : public TextGrammar {
 public:
  XgrammarGrammar(xgrammar::CompiledGrammar grammar, bool is_json,
                  std::shared_ptr<const Tokenizer> tokenizer,
                  std::shared_ptr<const VocabularyIndex> vocabulary)
      : grammar_(std::move(grammar)),
        is_json_(is_json),
        tokenizer_(std::move(tokenizer)),
        vocabulary_(std::move(vocabulary)) {}

  std::unique_ptr<TextMatcher> make_matcher(std::span<const int32_t> stop_ids) const override {
    return std::make_unique<XgrammarMatcher>(grammar_, stop_ids, is_json_, tokenizer_, vocabulary_);
  }
  int64_t num_bytes() const override { return static_cast<int64_t>(grammar_.MemorySizeBytes()); }

 private:
  xgrammar::CompiledGrammar grammar_;
  bool is_json_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const VocabularyIndex> vocabulary_;
};

int32_t random_id(std::span<const uint32_t> mask, std::mt19937& random) {
  const size_t first = random() % mask.size();
  for (size_t i = 0; i < mask.size(); ++i) {
    const size_t word = (first + i) % mask.size();
    if (mask[word] != 0) return static_cast<int32_t>(word * 32) + std::countr_zero(mask[word]);
  }
  return -1;
}

// Mean processor time of a mask, over texts drawn under the grammar.
Result<double> sample_mask_seconds(const TextGrammar& grammar, const VocabularyIndex& vocabulary,
                                   int32_t stop_id) {
  std::mt19937 random(1);  // the same sample for the same grammar
  std::vector<uint32_t> mask(vocabulary.num_words());
  double seconds = 0;
  int num_masks = 0;
  for (int text = 0; text < kNumSampleTexts; ++text) {
    auto matcher = grammar.make_matcher({&stop_id, 1});
    for (int i = 0; i < kSampleTokens; ++i) {
      const double begin = thread_seconds();
      matcher->fill_mask(mask);
      seconds += thread_seconds() - begin;
      ++num_masks;
      const int32_t id = random_id(mask, random);
      if (matcher->has_failed()) return make_error("it takes too long to follow");
      if (id < 0 && i == 0) return make_error("no text is valid under it");
      if (id < 0 || id == stop_id || !matcher->accept(id)) break;
      if (seconds > kMaxMaskSeconds * kNumSampleTexts * kSampleTokens) return seconds / num_masks;
    }
  }
  return seconds / num_masks;
}

class Compiler final : public TextGrammarCompiler {
 public:
  Compiler(std::shared_ptr<const Tokenizer> tokenizer,
           std::shared_ptr<const VocabularyIndex> vocabulary, int32_t stop_id,
           xgrammar::GrammarCompiler compiler, const GrammarOptions& options)
      : tokenizer_(std::move(tokenizer)),
        vocabulary_(std::move(vocabulary)),
        stop_id_(stop_id),
        max_seconds_(options.max_compile_seconds),
        compiler_(std::move(compiler)),
        cache_(options.max_cache_entries, options.max_cache_bytes) {}

  Result<std::shared_ptr<const TextGrammar>> compile(const TextSource& source,
                                                     const std::string& where) override {
    const std::string key = std::to_string(static_cast<int>(source.kind)) + source.text;
    auto grammar = cache_.get(key, [&] { return compile_contained(source); });
    if (grammar) return grammar;
    Error error = grammar.error();
    error.message = where + ": " + error.message;
    return error;
  }

  GrammarCacheStats cache_stats() const override { return cache_.stats(); }

 private:
  CompileCache::Value compile_contained(const TextSource& source) {
    try {
      return compile_here(source);
    } catch (const CheckError& e) {
      log_error("{}", e.what());
      return Error{.message = "internal error", .param = {}, .http_status = 500};
    } catch (const std::exception& e) {
      return Error{.message = clean_message(e.what())};
    }
  }

  CompileCache::Value compile_here(const TextSource& source) {
    const XgrammarBudget budget(max_seconds_);
    read(source);
    auto grammar = std::make_shared<XgrammarGrammar>(
        run(source), source.kind == TextSource::Kind::kJsonSchema, tokenizer_, vocabulary_);
    auto seconds = sample_mask_seconds(*grammar, *vocabulary_, stop_id_);
    if (!seconds) return seconds.error();
    if (*seconds > kMaxMaskSeconds) {
      return make_error("it is too ambiguous to be followed: {:.1f} ms a token, at most {:.1f}",
                        *seconds * 1e3, kMaxMaskSeconds * 1e3);
    }
    return std::shared_ptr<const TextGrammar>(std::move(grammar));
  }

  // Throws for what XGrammar cannot read. Its compiler would keep such a source in its cache for
  // good.
  static void read(const TextSource& source) {
    switch (source.kind) {
      case TextSource::Kind::kJsonSchema: xgrammar::Grammar::FromJSONSchema(source.text); return;
      case TextSource::Kind::kRegex: xgrammar::Grammar::FromRegex(source.text); return;
      case TextSource::Kind::kEbnf: xgrammar::Grammar::FromEBNF(source.text); return;
      case TextSource::Kind::kStructuralTag: break;
    }
    const auto tag = xgrammar::Grammar::FromStructuralTag(source.text);
    if (const auto* error = std::get_if<xgrammar::StructuralTagError>(&tag)) {
      std::visit([](const auto& e) { throw std::runtime_error(e.what()); }, *error);
    }
  }

  xgrammar::CompiledGrammar run(const TextSource& source) {
    try {
      switch (source.kind) {
        case TextSource::Kind::kJsonSchema: return compiler_.CompileJSONSchema(source.text);
        case TextSource::Kind::kRegex: return compiler_.CompileRegex(source.text);
        case TextSource::Kind::kEbnf: return compiler_.CompileGrammar(source.text);
        case TextSource::Kind::kStructuralTag: return compiler_.CompileStructuralTag(source.text);
      }
    } catch (...) {
      // Out of budget: next time there may be more.
      compiler_.ClearCache();
      throw;
    }
    CHECK(false, "kind {}", static_cast<int>(source.kind));
  }

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const std::shared_ptr<const VocabularyIndex> vocabulary_;
  const int32_t stop_id_;  // for samples
  const double max_seconds_;
  xgrammar::GrammarCompiler compiler_;
  CompileCache cache_;
};

}  // namespace

Result<std::unique_ptr<TextGrammarCompiler>> TextGrammarCompiler::create(
    std::shared_ptr<const Tokenizer> tokenizer, std::shared_ptr<const VocabularyIndex> vocabulary,
    const GrammarOptions& options) {
  // XGrammar never allows a token without bytes of its own accord, so special ones have none there.
  std::vector<std::string> tokens(static_cast<size_t>(vocabulary->vocab_size()));
  int32_t stop_id = -1;
  for (int32_t id = 0; id < vocabulary->vocab_size(); ++id) {
    if (has_bit(vocabulary->ordinary(), id)) {
      tokens[static_cast<size_t>(id)] = *tokenizer->token_bytes(id);
    } else {
      stop_id = id;
    }
  }
  if (stop_id < 0) return make_error("the tokenizer has no special token to end an answer with");
  try {
    xgrammar::SetMaxRecursionDepth(kMaxRecursion);
    const xgrammar::TokenizerInfo info(tokens, xgrammar::VocabType::RAW, vocabulary->vocab_size(),
                                       std::vector<int32_t>{stop_id});
    // One thread: an exception in one of its pool's threads would end the process.
    xgrammar::GrammarCompiler compiler(info, /*max_threads=*/1, /*cache_enabled=*/true,
                                       options.max_cache_bytes);
    return std::unique_ptr<TextGrammarCompiler>(std::make_unique<Compiler>(
        std::move(tokenizer), std::move(vocabulary), stop_id, std::move(compiler), options));
  } catch (const std::exception& e) {
    return make_error("the grammar compiler cannot use this tokenizer: {}",
                      clean_message(e.what()));
  }
}

}  // namespace briar
