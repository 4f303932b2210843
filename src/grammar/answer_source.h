// From what a request says its answer must be to the source of a grammar.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "grammar/grammar.h"
#include "grammar/text_grammar.h"

namespace briar {

// A source that is within the limits, and where its regular expressions are, to find the one at
// fault.
struct CheckedSource {
  TextSource source;
  std::vector<std::pair<std::string, std::string>> patterns = {};
};

// Not for kText, which needs no grammar. `path` names the answer in errors.
Result<CheckedSource> check_answer(const AnswerGrammar& answer, const std::string& path);

// Of a tool's arguments: by its parameters, or any JSON object.
Result<CheckedSource> check_parameters(const GrammarTool& tool, const std::string& path);
CheckedSource any_json_object();

}  // namespace briar
