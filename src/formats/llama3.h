// Llama 3: a header with the role, the text, <|eot_id|>. From 3.1 on with the knowledge cutoff and
// the date in the system message, tools as JSON, and their results from "ipython".
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// The template tells Llama 3 from 3.1 and later; without one, whether there is <|eom_id|>.
Result<std::shared_ptr<const Format>> make_llama3(std::shared_ptr<const Tokenizer> tokenizer,
                                                  std::string_view chat_template);

}  // namespace briar
