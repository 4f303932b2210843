#include "tokenizer/bpe_builder.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/json_parts.h"
#include "tokenizer/loaders.h"
#include "tokenizer/space_mark.h"

namespace briar {
namespace {

using namespace tokenizer_json;  // NOLINT: this file is its other half

// What has to be null or absent and what has to have one value, because anything else would change
// ids.
void check_settings(const bj::value& root, const std::string& path) {
  const bj::value& model = member(root, "model");
  if (!is_string(member(model, "type"), "BPE")) {
    fail(path, "model.type is {}, only \"BPE\" is supported", bj::serialize(member(model, "type")));
  }
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const bj::value& value = member(model, key);
    if (!value.is_null() && !is_string(value, "")) {
      fail(path, "model.{} is {}, only null is supported", key, bj::serialize(value));
    }
  }
}

// How a file spells the bytes of its tokens.
class Spelling {
 public:
  Spelling(bool is_byte_level, std::string path)
      : is_byte_level_(is_byte_level), path_(std::move(path)) {}

  std::string bytes_of(std::string_view text) const {
    std::string bytes;
    if (!is_byte_level_) {
      bytes = with_spaces(text);
    } else if (!alphabet_.decode(text, bytes)) {
      fail(path_, "token \"{}\" is not spelled in the byte-level alphabet", text);
    }
    if (bytes.empty()) fail(path_, "there is an empty token");
    return bytes;
  }

 private:
  ByteAlphabet alphabet_;
  bool is_byte_level_;
  std::string path_;
};

void read_vocabulary(const bj::value& model, const AddedTokens& added, const Spelling& spelling,
                     const std::string& path, BpeLists& lists) {
  const bj::object* entries = member(model, "vocab").if_object();
  if (entries == nullptr) fail(path, "model.vocab is not an object");
  const bool has_byte_tokens = is_true(member(model, "byte_fallback"));
  for (const auto& [key, value] : *entries) {
    const std::string_view text = key;
    const auto id = static_cast<size_t>(checked_id(value, text, path));
    if (id >= lists.tokens.size()) lists.tokens.resize(id + 1);
    const auto added_spelling = added.spelling_of(static_cast<int32_t>(id));
    // Some files list the added tokens here, too. Ordinary text must never become one.
    if (added_spelling == text) continue;
    const auto byte = has_byte_tokens ? byte_token(text) : std::nullopt;
    const std::string bytes =
        byte ? std::string(1, static_cast<char>(*byte)) : spelling.bytes_of(text);
    if (added_spelling == bytes) continue;
    if (added_spelling || !lists.tokens[id].empty()) {
      fail(path, "token \"{}\" has the id {} of another", text, id);
    }
    lists.tokens[id] = bytes;
    if (!byte) continue;
    lists.is_hidden.resize(lists.tokens.size(), 0);
    lists.is_hidden[id] = 1;
    lists.byte_fallback_ids[*byte] = static_cast<int32_t>(id);
  }
  lists.is_hidden.resize(lists.tokens.size(), 0);
}

// A merge is ["left", "right"] or, in older files, "left right".
void read_merges(const bj::value& model, const Spelling& spelling, const std::string& path,
                 BpeLists& lists) {
  const bj::array* merges = member(model, "merges").if_array();
  if (merges == nullptr) fail(path, "model.merges is not an array");
  lists.merges.reserve(merges->size());
  for (const bj::value& merge : *merges) {
    std::string_view left, right;
    const bj::array* pair = merge.if_array();
    if (pair != nullptr && pair->size() == 2 && (*pair)[0].is_string() && (*pair)[1].is_string()) {
      left = (*pair)[0].get_string();
      right = (*pair)[1].get_string();
    } else if (merge.is_string()) {
      const std::string_view text = merge.get_string();
      const size_t space = std::min(text.find(' '), text.size());
      left = text.substr(0, space);
      right = text.substr(std::min(space + 1, text.size()));
    }
    if (left.empty() || right.empty()) {
      fail(path, "model.merges[{}] is not a pair of tokens", lists.merges.size());
    }
    lists.merges.emplace_back(spelling.bytes_of(left), spelling.bytes_of(right));
  }
}

int32_t read_unknown_id(const bj::value& model, const AddedTokens& added, const std::string& path) {
  const bj::value& unknown = member(model, "unk_token");
  if (unknown.is_null() || is_string(unknown, "")) return kNoToken;
  const auto id = unknown.is_string() ? added.structure().id_of(unknown.get_string())
                                      : std::optional<int32_t>();
  if (!id) fail(path, "model.unk_token is {}, which is no special token", bj::serialize(unknown));
  return *id;
}

TokenizerParts read_tokenizer(const bj::value& root, const std::string& path) {
  if (!root.is_object()) fail(path, "not a JSON object");
  check_settings(root, path);
  TokenizerParts parts;
  const bool is_byte_level = read_splits(root, path, parts);
  if (!is_byte_level && !parts.normalizer.has_space_marks) {
    fail(path, "the vocabulary is neither byte-level nor has spaces as U+2581");
  }
  parts.added = read_added_tokens(root, path);
  parts.bos_id = read_bos_id(root, parts.added, path);
  const bj::value& model = member(root, "model");
  const Spelling spelling(is_byte_level, path);
  BpeLists lists;
  lists.takes_tokens_whole = is_true(member(model, "ignore_merges"));
  lists.has_character_symbols = !is_byte_level;
  lists.unknown_id = read_unknown_id(model, parts.added, path);
  lists.fuses_unknown = is_true(member(model, "fuse_unk"));
  read_vocabulary(model, parts.added, spelling, path, lists);
  read_merges(model, spelling, path, lists);
  if (!is_byte_level && parts.splitter.is_empty() && !has_token_across_words(lists.tokens)) {
    parts.splitter.add(word_piece_end);
  }
  auto bpe = build_bpe(std::move(lists), path);
  if (!bpe) throw UserError(bpe.error());
  parts.bpe = std::move(*bpe);
  return parts;
}

}  // namespace

Result<TokenizerParts> parse_tokenizer_json(const std::string& path) {
  const auto root = json::parse_file(path);
  if (!root) return root.error();
  try {
    return read_tokenizer(*root, path);
  } catch (const UserError& e) {
    return e.error;
  }
}

}  // namespace briar
