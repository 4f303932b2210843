// What goes with a model beside its weights: tokenizer, chat format, defaults. From a model folder
// or a GGUF file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/format.h"
#include "tokenizer/tokenizer.h"
#include "weights/hf_config.h"

namespace briar {

// The model's tokenizer; for gpt-oss folders without tokenizer files, the bundled one. `path` is a
// folder or a GGUF file. Throws UserError.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path);

struct ChatModel {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Format> format;
  GenerationConfig defaults;      // how to sample where a request does not say
  std::vector<int32_t> stop_ids;  // an answer ends after one of these: the format's and the file's
};

// gpt-oss's own tokenizer and format, for engines without a model.
ChatModel bundled_chat_model();

// How a model's files say to sample, and where its answers end. Throws UserError.
GenerationConfig load_generation_config(const std::string& path);

// `format_name`: empty for the model's own. Throws UserError.
ChatModel load_chat_model(const std::string& path, const std::string& format_name = {});

}  // namespace briar
