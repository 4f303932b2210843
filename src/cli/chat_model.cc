#include "cli/chat_model.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/file.h"
#include "formats/chat_template.h"
#include "formats/registry.h"
#include "tokenizer/gguf_vocabulary.h"
#include "weights/gguf_model.h"

namespace briar {
namespace {

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw UserError(result.error());
  return *std::move(result);
}

std::string read_model_type(const std::string& directory) {
  const HfConfig config = value_or_throw(HfConfig::open(directory));
  return config.find_string("model_type").value_or("gpt_oss");  // OpenAI's own folders lack it
}

std::optional<int32_t> find_id(const GgufMetadata& metadata, std::string_view key) {
  const auto id = metadata.find_integer(key);
  if (!id) return std::nullopt;
  if (*id < 0 || *id > INT32_MAX) throw_user_error("{}: {} is {}", metadata.file(), key, *id);
  return static_cast<int32_t>(*id);
}

GgufVocabulary read_vocabulary(const GgufMetadata& metadata) {
  const auto text = [&](std::string_view key) {
    return std::string(metadata.find_string(key).value_or(""));
  };
  GgufVocabulary out{.model = text("tokenizer.ggml.model"), .pre = text("tokenizer.ggml.pre")};
  if (const auto tokens = metadata.find_strings("tokenizer.ggml.tokens")) {
    out.tokens.assign(tokens->begin(), tokens->end());
  }
  if (const auto merges = metadata.find_strings("tokenizer.ggml.merges")) {
    out.merges.assign(merges->begin(), merges->end());
  }
  if (const auto types = metadata.find_integers("tokenizer.ggml.token_type")) {
    for (const int64_t type : *types) out.token_types.push_back(static_cast<int32_t>(type));
  }
  out.scores = metadata.find_reals("tokenizer.ggml.scores").value_or(std::vector<float>());
  out.bos_id = find_id(metadata, "tokenizer.ggml.bos_token_id");
  out.adds_bos = metadata.find_bool("tokenizer.ggml.add_bos_token");
  out.adds_space_prefix = metadata.find_bool("tokenizer.ggml.add_space_prefix");
  return out;
}

struct Facts {
  std::shared_ptr<const Tokenizer> tokenizer;
  ModelChatFacts chat;
};

Facts read_gguf(const std::string& path) {
  const GgufFile file = value_or_throw(GgufFile::open(path));
  const GgufMetadata& metadata = file.metadata();
  const GgufVocabulary vocabulary = read_vocabulary(metadata);
  Facts facts;
  facts.tokenizer = value_or_throw(Tokenizer::from_gguf(vocabulary, path));
  facts.chat.model_type = metadata.find_string("general.architecture").value_or("");
  facts.chat.chat_template = metadata.find_string("tokenizer.chat_template").value_or("");
  return facts;
}

Facts read_folder(const std::string& directory) {
  Facts facts;
  facts.tokenizer = load_tokenizer(directory);
  facts.chat.model_type = read_model_type(directory);
  facts.chat.chat_template = value_or_throw(read_chat_template(directory));
  return facts;
}

}  // namespace

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path) {
  if (is_model_file(path)) return read_gguf(path).tokenizer;
  bool has_files = file_exists(path + "/tokenizer.json");
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    has_files |= entry.path().extension() == ".tiktoken";
  }
  if (!has_files && file_exists(path + "/config.json") && read_model_type(path) == "gpt_oss") {
    return Tokenizer::bundled_o200k_harmony();
  }
  return value_or_throw(Tokenizer::load(path));
}

GenerationConfig load_generation_config(const std::string& path) {
  return value_or_throw(GenerationConfig::open(path, value_or_throw(HfConfig::open(path))));
}

ChatModel bundled_chat_model() {
  ChatModel model;
  model.tokenizer = Tokenizer::bundled_o200k_harmony();
  model.format = value_or_throw(make_format("harmony", model.tokenizer));
  model.stop_ids = model.format->stop_ids();
  return model;
}

ChatModel load_chat_model(const std::string& path, const std::string& format_name) {
  Facts facts = is_model_file(path) ? read_gguf(path) : read_folder(path);
  ChatModel model;
  model.tokenizer = facts.tokenizer;
  model.format =
      format_name.empty()
          ? value_or_throw(make_format_for_model(facts.chat, facts.tokenizer))
          : value_or_throw(make_format(format_name, facts.tokenizer, facts.chat.chat_template));
  model.defaults = load_generation_config(path);
  model.stop_ids = model.format->stop_ids();
  for (const int64_t id : model.defaults.eos_token_ids) {
    const auto narrow = static_cast<int32_t>(id);
    if (std::find(model.stop_ids.begin(), model.stop_ids.end(), narrow) == model.stop_ids.end()) {
      model.stop_ids.push_back(narrow);
    }
  }
  return model;
}

}  // namespace briar
