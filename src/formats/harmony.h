// Harmony, the chat format of gpt-oss. docs/harmony.md says where it departs from OpenAI's library.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// There are no variants: the template is not looked at.
Result<std::shared_ptr<const Format>> make_harmony(std::shared_ptr<const Tokenizer> tokenizer,
                                                   std::string_view chat_template);

}  // namespace briar
