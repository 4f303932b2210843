// The formats that this build knows.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// By the format's name, such as "harmony". Fails for an unknown name, and if the tokenizer lacks
// the special tokens that the format needs.
Result<std::shared_ptr<const Format>> make_format(std::string_view name,
                                                  std::shared_ptr<const Tokenizer> tokenizer);

// By `model_type` in the model's config.json, such as "gpt_oss".
Result<std::shared_ptr<const Format>> make_format_for_model(
    std::string_view model_type, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace briar
