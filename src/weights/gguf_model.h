// What a GGUF file says, in Hugging Face's words: hyperparameters as a config.json, tensors under
// the names of a safetensors file. With these a model does not know which kind of file it reads.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"
#include "weights/hf_config.h"

namespace briar {

// True where `model` names a file, which is then taken for a GGUF file, and not a folder.
bool is_model_file(const std::string& model);

// Architectures llama, qwen2 and qwen3; for any other an error that lists them. Values are not
// checked here: the model checks them as it does those of a config.json.
Result<HfConfig> gguf_config(const GgufContents& gguf);

// Renames the tensors, marks those whose rows the conversion reordered, and drops what gguf_config
// has read. Names it does not know stay as they are: a loader calls them unused.
Status rename_gguf_tensors(GgufContents& gguf);

}  // namespace briar
