// Harmony, the chat format of gpt-oss. docs/harmony.md says where it departs from OpenAI's library.
#pragma once

#include <memory>

#include "base/result.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

Result<std::shared_ptr<const Format>> make_harmony(std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace briar
