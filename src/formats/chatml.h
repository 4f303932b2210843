// ChatML: SmolLM2, Qwen2, Qwen2.5, Qwen3 and many others. <|im_start|>ROLE, a line break, the text,
// <|im_end|>; Qwen's add tools as <tool_call> JSON and reasoning in <think>.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// What differs between models is read from their template: the default system message, whether
// there are tools and reasoning, and whether the prompt ends in <think>. Without a template the
// tokenizer's special tokens decide.
Result<std::shared_ptr<const Format>> make_chatml(std::shared_ptr<const Tokenizer> tokenizer,
                                                  std::string_view chat_template);

}  // namespace briar
