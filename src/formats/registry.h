// The formats that this build knows.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/format.h"
#include "tokenizer/tokenizer.h"

namespace briar {

// What a model's files say about its chat format.
struct ModelChatFacts {
  std::string model_type;          // of config.json, such as "gpt_oss"; of a GGUF, its architecture
  std::string chat_template = {};  // Jinja; empty if there is none (chat_template.h)
};

// By the format's name, such as "harmony". The template tells the variants of a format apart. Fails
// for an unknown name, and if the tokenizer lacks the special tokens that the format needs.
Result<std::shared_ptr<const Format>> make_format(std::string_view name,
                                                  std::shared_ptr<const Tokenizer> tokenizer,
                                                  std::string_view chat_template = {});

// The format of a model: by the telltale word in its template, else by the telltale special token
// of its tokenizer, else by its type.
Result<std::shared_ptr<const Format>> make_format_for_model(
    const ModelChatFacts& facts, std::shared_ptr<const Tokenizer> tokenizer);

// The same without a template.
Result<std::shared_ptr<const Format>> make_format_for_model(
    std::string_view model_type, std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace briar
