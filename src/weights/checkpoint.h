// The tensors of a Hugging Face model folder or of a GGUF file, memory-mapped.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "weights/safetensors.h"

namespace briar {

// All tensors of a folder, from the first of these that exists: `model.safetensors`; the shards
// that `model.safetensors.index.json` lists; all `*.safetensors`. Or those of a GGUF file, under
// the names that a folder has (gguf_model.h). Entries and their bytes live as long as the
// checkpoint. A file that shrinks while it is mapped kills the process (SIGBUS), as with every
// mapped reader: do not overwrite a model in place while it loads.
class Checkpoint {
 public:
  // Errors name file and tensor. A missing shard, a tensor that the index promises and its shard
  // lacks, and a name in two files are errors.
  static Result<std::unique_ptr<Checkpoint>> open(const std::string& model);

  // nullptr where there is none of that name.
  const TensorEntry* find(std::string_view name) const;
  // In the order of files and, within one, of the header.
  const std::vector<TensorEntry>& tensors() const { return tensors_; }
  // Folder or file, as it was opened.
  const std::string& path() const { return path_; }
  // Sum of all tensors' bytes.
  int64_t num_bytes() const;

 private:
  Checkpoint() = default;
  Status add_safetensors(const std::string& file_name);
  Status add_gguf();
  Status add_folder();
  Status check_names();

  std::string path_;
  std::vector<MappedFile> files_;
  std::vector<TensorEntry> tensors_;
  std::unordered_map<std::string_view, const TensorEntry*> by_name_;  // into tensors_
};

}  // namespace briar
