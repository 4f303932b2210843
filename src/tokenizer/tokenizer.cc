#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "tokenizer/loaders.h"
#include "tokenizer/utf8.h"

// bundled_o200k.S
extern "C" const char briar_o200k_begin[];
extern "C" const char briar_o200k_end[];

namespace briar {

struct Tokenizer::Impl {
  TokenizerParts parts;

  std::optional<std::string_view> token_bytes(int32_t id) const {
    const TokenBytes& tokens = parts.bpe.vocabulary.tokens();
    if (id >= 0 && id < tokens.size() && !tokens[id].empty()) return tokens[id];
    return parts.added.spelling_of(id);
  }

  // How many bytes of the first token are the space that encoding put before the text.
  size_t prefix_size(std::span<const int32_t> ids) const {
    if (parts.normalizer.prefix == Normalizer::SpacePrefix::kNone || ids.empty()) return 0;
    return token_bytes(ids[0]).value_or("").starts_with(' ') ? 1 : 0;
  }

  // A text without tokens to look for before it is normalized.
  void encode_gap(std::string_view text, bool is_start, std::vector<int32_t>& out) const {
    if (text.empty()) return;
    std::string buffer;
    text = parts.normalizer.apply(text, is_start, buffer);
    size_t begin = 0;
    if (parts.added.has(AddedTokens::Kinds::kNormalizedText)) {
      while (const auto match =
                 parts.added.find(text, begin, text.size(), AddedTokens::Kinds::kNormalizedText)) {
        encode_pieces(text.substr(begin, match->begin - begin), out);
        out.push_back(match->id);
        begin = match->end;
      }
    }
    encode_pieces(text.substr(begin), out);
  }

  void encode_pieces(std::string_view text, std::vector<int32_t>& out) const {
    PieceEncoder encoder(parts.bpe, text.data() + text.size(), text.size());
    parts.splitter.split(text, [&](std::string_view piece) { encoder.encode(piece, out); });
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

Tokenizer::Tokenizer(TokenizerParts parts)
    : impl_(std::make_unique<const Impl>(Impl{std::move(parts)})) {}
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
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(*parsed)));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_gguf(const GgufVocabulary& vocabulary,
                                                              std::string_view source) {
  auto parsed = parse_gguf_vocabulary(vocabulary, source);
  if (!parsed) return parsed.error();
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(*parsed)));
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_tiktoken(std::string_view ranks,
                                                                  std::string_view source) {
  auto vocabulary = parse_tiktoken(ranks, source);
  if (!vocabulary) return vocabulary.error();
  if (vocabulary->tokens().size() != kO200kNumOrdinary) {
    return make_error("{}: {} ranks, but o200k_base has {}; is the file cut off?", source,
                      vocabulary->tokens().size(), kO200kNumOrdinary);
  }
  TokenizerParts parts;
  parts.bpe.vocabulary = std::move(*vocabulary);
  parts.added = AddedTokens(o200k_harmony_special_tokens());
  parts.splitter.add(piece_end);
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(parts)));
}

std::shared_ptr<const Tokenizer> Tokenizer::bundled_o200k_harmony() {
  static const std::shared_ptr<const Tokenizer> tokenizer =
      from_tiktoken({briar_o200k_begin, briar_o200k_end}, "bundled o200k_base.tiktoken").value();
  return tokenizer;
}

int32_t Tokenizer::vocab_size() const {
  const TokenizerParts& parts = impl_->parts;
  return std::max(parts.bpe.vocabulary.tokens().size(), parts.added.end_id());
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 1);  // most texts have 3 to 5 bytes a token
  encode(text, ids);
  return ids;
}

void Tokenizer::encode(std::string_view text, std::vector<int32_t>& out) const {
  if (!impl_->parts.added.has(AddedTokens::Kinds::kText)) return impl_->encode_gap(text, true, out);
  const TextPart part{.text = text, .is_trusted = false};
  const std::vector<int32_t> ids = encode_parts({&part, 1});
  out.insert(out.end(), ids.begin(), ids.end());
}

std::vector<int32_t> Tokenizer::encode_with_specials(std::string_view text) const {
  const TextPart part{.text = text, .is_trusted = true};
  return encode_parts({&part, 1});
}

std::vector<int32_t> Tokenizer::encode_parts(std::span<const TextPart> parts) const {
  std::string joined;
  if (parts.size() != 1) {
    for (const TextPart& part : parts) joined += part.text;
  }
  const std::string_view text = parts.size() == 1 ? parts[0].text : std::string_view(joined);
  std::vector<int32_t> ids;
  size_t gap_begin = 0;
  size_t part_end = 0;
  for (const TextPart& part : parts) {
    const size_t part_begin = part_end;
    part_end += part.text.size();
    const auto kinds = part.is_trusted ? AddedTokens::Kinds::kAll : AddedTokens::Kinds::kText;
    if (!impl_->parts.added.has(kinds)) continue;
    size_t from = std::max(part_begin, gap_begin);
    while (const auto match = impl_->parts.added.find(text, from, part_end, kinds)) {
      impl_->encode_gap(text.substr(gap_begin, match->begin - gap_begin), gap_begin == 0, ids);
      ids.push_back(match->id);
      gap_begin = from = match->end;
      if (from >= part_end) break;
    }
  }
  impl_->encode_gap(text.substr(gap_begin), gap_begin == 0, ids);
  return ids;
}

std::optional<int32_t> Tokenizer::bos_id() const { return impl_->parts.bos_id; }

std::optional<std::string_view> Tokenizer::token_bytes(int32_t id) const {
  return impl_->token_bytes(id);
}

bool Tokenizer::is_special(int32_t id) const {
  return impl_->parts.added.structure().spelling_of(id).has_value();
}

std::optional<int32_t> Tokenizer::special_id(std::string_view spelling) const {
  return impl_->parts.added.structure().id_of(spelling);
}

Result<std::string> Tokenizer::decode_bytes(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) {
    const auto token = impl_->token_bytes(id);
    if (!token)
      return make_error("token id {} is not in the vocabulary of {} ids", id, vocab_size());
    bytes += *token;
  }
  return bytes.substr(impl_->prefix_size(ids));
}

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += impl_->token_bytes(id).value_or("");
  return lossy_utf8(std::string_view(bytes).substr(impl_->prefix_size(ids)));
}

}  // namespace briar
