#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "tokenizer/bpe.h"
#include "tokenizer/loaders.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/split.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"

// bundled_o200k.S
extern "C" const char briar_o200k_begin[];
extern "C" const char briar_o200k_end[];

namespace briar {

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  SpecialTokens specials;

  std::optional<std::string_view> token_bytes(int32_t id) const {
    if (id >= 0 && id < vocabulary.tokens().size()) {
      const std::string_view bytes = vocabulary.tokens()[id];
      if (!bytes.empty()) return bytes;
    }
    return specials.spelling_of(id);
  }
};

namespace {

// The only *.tiktoken file of a directory.
Result<std::string> find_tiktoken_file(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code code;
  for (std::filesystem::directory_iterator it(directory, code), end; !code && it != end;
       it.increment(code)) {
    if (it->path().extension() == ".tiktoken") found.push_back(it->path().string());
  }
  if (code) return make_error("{}: cannot read the directory: {}", directory, code.message());
  if (found.empty())
    return make_error("{}: neither tokenizer.json nor a .tiktoken file", directory);
  std::sort(found.begin(), found.end());
  if (found.size() > 1) {
    return make_error("{}: several .tiktoken files, among them {} and {}", directory, found[0],
                      found[1]);
  }
  return found[0];
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::string& directory) {
  const std::string json_path = directory + "/tokenizer.json";
  if (file_exists(json_path)) return load_tokenizer_json(json_path);
  const auto path = find_tiktoken_file(directory);
  if (!path) return path.error();
  const auto file = MappedFile::open(*path);
  if (!file) return file.error();
  return from_tiktoken(file->text(), *path);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load_tokenizer_json(const std::string& path) {
  auto parsed = parse_tokenizer_json(path);
  if (!parsed) return parsed.error();
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::make_unique<const Impl>(
      Impl{std::move(parsed->vocabulary), std::move(parsed->specials)})));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_tiktoken(std::string_view ranks,
                                                                  std::string_view source) {
  auto vocabulary = parse_tiktoken(ranks, source);
  if (!vocabulary) return vocabulary.error();
  if (vocabulary->tokens().size() != kO200kNumOrdinary) {
    return make_error("{}: {} ranks, but o200k_base has {}; is the file cut off?", source,
                      vocabulary->tokens().size(), kO200kNumOrdinary);
  }
  return std::shared_ptr<const Tokenizer>(new Tokenizer(
      std::make_unique<const Impl>(Impl{std::move(*vocabulary), o200k_harmony_special_tokens()})));
}

std::shared_ptr<const Tokenizer> Tokenizer::bundled_o200k_harmony() {
  static const std::shared_ptr<const Tokenizer> tokenizer =
      from_tiktoken({briar_o200k_begin, briar_o200k_end}, "bundled o200k_base.tiktoken").value();
  return tokenizer;
}

int32_t Tokenizer::vocab_size() const {
  return std::max(impl_->vocabulary.tokens().size(), impl_->specials.end_id());
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 1);  // most texts have 3 to 5 bytes a token
  encode(text, ids);
  return ids;
}

void Tokenizer::encode(std::string_view text, std::vector<int32_t>& out) const {
  const char* const end = text.data() + text.size();
  PieceEncoder encoder(impl_->vocabulary, end, text.size());
  for (const char* p = text.data(); p < end;) {
    const char* const next = piece_end(p, end);
    encoder.encode({p, next}, out);
    p = next;
  }
}

std::vector<int32_t> Tokenizer::encode_with_specials(std::string_view text) const {
  std::vector<int32_t> ids;
  size_t begin = 0;
  while (const auto match = impl_->specials.find(text, begin)) {
    encode(text.substr(begin, match->begin - begin), ids);
    ids.push_back(match->id);
    begin = match->begin + match->size;
  }
  encode(text.substr(begin), ids);
  return ids;
}

std::optional<std::string_view> Tokenizer::token_bytes(int32_t id) const {
  return impl_->token_bytes(id);
}

bool Tokenizer::is_special(int32_t id) const { return impl_->specials.spelling_of(id).has_value(); }

std::optional<int32_t> Tokenizer::special_id(std::string_view spelling) const {
  return impl_->specials.id_of(spelling);
}

Result<std::string> Tokenizer::decode_bytes(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    const auto token = impl_->token_bytes(id);
    if (!token)
      return make_error("token id {} is not in the vocabulary of {} ids", id, vocab_size());
    bytes += *token;
  }
  return bytes;
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += impl_->token_bytes(id).value_or("");
  return lossy_utf8(bytes);
}

}  // namespace briar
