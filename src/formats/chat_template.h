// Where a model folder keeps its chat template.
#pragma once

#include <string>

#include "base/result.h"

namespace briar {

// The Jinja text of chat_template.jinja, or of "chat_template" in tokenizer_config.json (its entry
// "default" if there are several); empty if there is none. Formats only look for telltale words in
// it; nothing runs it.
Result<std::string> read_chat_template(const std::string& model_directory);

}  // namespace briar
