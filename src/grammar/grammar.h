// Structured output: what a request asks for (a JSON schema, a tool call, ...) becomes a mask over
// the next token. docs/structured_output.md says what is enforced and what is not.
//
//   auto compiler = *GrammarCompiler::create(format, tokenizer);
//   auto constraint = compiler->compile({.answer = {.kind = AnswerGrammar::Kind::kJsonSchema,
//                                                   .source = schema_text}});
//   request.constraint = std::move(*constraint);
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "briar/engine.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// What the answer's text must be. Reasoning and preambles are never bound by it.
struct AnswerGrammar {
  enum class Kind {
    kText,          // anything
    kJsonObject,    // any JSON object
    kJsonSchema,    // source: a JSON schema
    kRegex,         // source: a regular expression that the whole text matches
    kEbnf,          // source: GBNF-like rules; the rule `root` is the whole text
    kChoice,        // one of `choices`
    kStructuralTag  // source: XGrammar's structural tag, JSON
  };
  Kind kind = Kind::kText;
  std::string source = {};
  std::vector<std::string> choices = {};  // kChoice only; at least one, none empty
};

// A function that may be called.
struct GrammarTool {
  std::string name = {};
  std::shared_ptr<const boost::json::value> parameters = {};  // null: takes no argument
  bool is_strict = false;
};

enum class ToolChoice {
  kNone,  // no call
  kAuto,  // a call or an answer; arguments of strict tools by their schema, of others any object
  kRequired,  // a call of one of the tools, arguments by its schema
  kNamed      // the same of the tool that `tool_name` names
};

struct ConstraintRequest {
  AnswerGrammar answer = {};
  std::vector<GrammarTool> tools = {};
  ToolChoice tool_choice = ToolChoice::kNone;
  std::string tool_name = {};  // kNamed only
};

// One request's place in its grammar. Masks never allow an id that the tokenizer has not, nor a
// special token other than those that the format's grammar has at that place. Once the grammar is
// complete and can go on no further, only stop ids are allowed.
class GrammarConstraint : public TokenConstraint {
 public:
  // A stop id was accepted.
  virtual bool is_finished() const = 0;
  // Takes the last `num_tokens` accepted tokens back; at most as many as were accepted.
  virtual void roll_back(int64_t num_tokens) = 0;
};

struct GrammarCacheStats {
  int64_t num_entries = 0;
  int64_t num_bytes = 0;  // as the grammars' library estimates them
  uint64_t num_hits = 0;
  uint64_t num_compiled = 0;
};

struct GrammarOptions {
  int64_t max_cache_entries = 256;
  int64_t max_cache_bytes = int64_t{256} << 20;
  double max_compile_seconds = 1;  // of one grammar, processor time
};

// One a model; made in about 0.2 s. All calls are thread-safe.
class GrammarCompiler {
 public:
  // The format and the tokenizer must be of the same model.
  static Result<std::unique_ptr<GrammarCompiler>> create(std::shared_ptr<const Format> format,
                                                         std::shared_ptr<const Tokenizer> tokenizer,
                                                         GrammarOptions options = {});
  virtual ~GrammarCompiler() = default;

  // The constraint begins where the format's prompt ends (in Harmony: inside the header that
  // <|start|>assistant opened). Compiles what is not in the cache, which takes up to
  // max_compile_seconds a grammar: call it on a thread that may wait.
  //
  // Errors (400, one line) name the field in `param` ("response_format" or "tools", or
  // "tool_choice") and the place in it, such as
  //   tools[0].parameters.properties.a.type: "strnig" is no type of JSON
  // Nothing that a request holds makes it throw or end the process.
  virtual Result<std::unique_ptr<GrammarConstraint>> compile(const ConstraintRequest& request) = 0;

  virtual GrammarCacheStats cache_stats() const = 0;
};

}  // namespace briar
