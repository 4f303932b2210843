// Mistral: [INST] question [/INST] answer </s>. From v3 on with tools: [AVAILABLE_TOOLS],
// [TOOL_CALLS] and [TOOL_RESULTS]; v7 adds [SYSTEM_PROMPT].
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// The template, or without one the tokenizer's special tokens, tell the versions apart.
Result<std::shared_ptr<const Format>> make_mistral(std::shared_ptr<const Tokenizer> tokenizer,
                                                   std::string_view chat_template);

}  // namespace briar
