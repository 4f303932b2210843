#include <array>
#include <boost/json.hpp>
#include <set>

#include "base/json.h"
#include "tokenizer/loaders.h"
#include "tokenizer/split.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

namespace bj = boost::json;

// The member `key`, or null if `value` is no object or has no such member.
const bj::value& member(const bj::value& value, std::string_view key) {
  const bj::object* object = value.if_object();
  const bj::value* found = object != nullptr ? object->if_contains(key) : nullptr;
  static const bj::value null;
  return found != nullptr ? *found : null;
}

bool is_string(const bj::value& value, std::string_view text) {
  return value.is_string() && std::string_view(value.get_string()) == text;
}

bool is_true(const bj::value& value) { return value.is_bool() && value.get_bool(); }

// Throughout this file parsing functions throw UserError; parse_tokenizer_json() catches it.
template <class... Args>
[[noreturn]] void fail(const std::string& path, fmt::format_string<Args...> text, Args&&... args) {
  throw_user_error("{}: {}", path, fmt::format(text, std::forward<Args>(args)...));
}

// GPT-2's byte alphabet: printable Latin-1 characters stand for themselves, the other bytes, in
// order, for the code points from U+0100.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    bytes_.fill(kNone);
    uint32_t next = 256;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool is_printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      bytes_[is_printable ? byte : next++] = static_cast<int16_t>(byte);
    }
  }

  // The bytes that `text` spells; false if it has a character outside the alphabet.
  bool decode(std::string_view text, std::string& out) const {
    out.clear();
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const Utf8Char c = decode_utf8_char(p, end);
      if (c.code_point >= bytes_.size() || bytes_[c.code_point] == kNone) return false;
      out += static_cast<char>(bytes_[c.code_point]);
      p += c.length;
    }
    return true;
  }

 private:
  static constexpr int16_t kNone = -1;
  std::array<int16_t, 324> bytes_;
};

// What has to be null or absent and what has to have one value, because anything else would change
// ids.
void check_settings(const bj::value& root, const std::string& path) {
  const bj::value& model = member(root, "model");
  if (!is_string(member(model, "type"), "BPE")) {
    fail(path, "model.type is {}, only \"BPE\" is supported", bj::serialize(member(model, "type")));
  }
  for (const char* key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const bj::value& value = member(model, key);
    if (!value.is_null() && !is_string(value, "")) {
      fail(path, "model.{} is {}, only null is supported", key, bj::serialize(value));
    }
  }
  if (is_true(member(model, "byte_fallback"))) fail(path, "model.byte_fallback is not supported");
  if (!is_true(member(model, "ignore_merges"))) {
    fail(path, "model.ignore_merges must be true: o200k takes a piece that is a token as it is");
  }
  if (!member(root, "normalizer").is_null()) {
    fail(path, "the normalizer {} is not supported", bj::serialize(member(root, "normalizer")));
  }
}

bool is_o200k_split(const bj::value& step) {
  return is_string(member(step, "type"), "Split") &&
         is_string(member(member(step, "pattern"), "Regex"), kO200kPattern) &&
         is_string(member(step, "behavior"), "Isolated") && !is_true(member(step, "invert"));
}

bool is_plain_byte_level(const bj::value& step) {
  return is_string(member(step, "type"), "ByteLevel") &&
         !is_true(member(step, "add_prefix_space")) && member(step, "use_regex").is_bool() &&
         !is_true(member(step, "use_regex"));
}

void check_pre_tokenizer(const bj::value& root, const std::string& path) {
  const bj::array* steps = member(member(root, "pre_tokenizer"), "pretokenizers").if_array();
  if (steps == nullptr || steps->size() != 2 || !is_o200k_split((*steps)[0]) ||
      !is_plain_byte_level((*steps)[1])) {
    fail(path,
         "the pre_tokenizer is not o200k's (its Split, then ByteLevel); no other is supported");
  }
}

int32_t checked_id(const bj::value& value, std::string_view token, const std::string& path) {
  const int64_t id = value.is_int64() ? value.get_int64() : -1;
  if (id < 0 || id >= kMaxVocabularySize) {
    fail(path, "the id of token \"{}\" is {}, not a number in [0, {})", token, bj::serialize(value),
         kMaxVocabularySize);
  }
  return static_cast<int32_t>(id);
}

// The spelling of one added token. What makes it more than a plain special token is refused.
std::string added_token_spelling(const bj::value& token, size_t index, const std::string& path) {
  const bj::string* content = member(token, "content").if_string();
  if (content == nullptr || content->empty()) fail(path, "added_tokens[{}] has no content", index);
  for (const char* key : {"lstrip", "rstrip", "single_word"}) {
    if (is_true(member(token, key))) {
      fail(path, "added_tokens[{}] {} has {}, which is not supported", index,
           bj::serialize(*content), key);
    }
  }
  if (!is_true(member(token, "special"))) {
    fail(path, "added_tokens[{}] {} is not special; such tokens are not supported", index,
         bj::serialize(*content));
  }
  return std::string(*content);
}

SpecialTokens read_added_tokens(const bj::value& root, const std::string& path) {
  std::vector<std::pair<std::string, int32_t>> tokens;
  const bj::value& added = member(root, "added_tokens");
  if (added.is_null()) return {};
  if (!added.is_array()) fail(path, "added_tokens is not an array");
  std::set<std::string> spellings;
  for (size_t i = 0; i < added.get_array().size(); ++i) {
    const bj::value& token = added.get_array()[i];
    std::string spelling = added_token_spelling(token, i, path);
    const int32_t id = checked_id(member(token, "id"), spelling, path);
    if (!spellings.insert(spelling).second)
      fail(path, "added token \"{}\" is there twice", spelling);
    tokens.emplace_back(std::move(spelling), id);
  }
  return SpecialTokens(std::move(tokens));
}

Vocabulary read_vocabulary(const bj::value& model, const SpecialTokens& specials,
                           const std::string& path) {
  const bj::object* entries = member(model, "vocab").if_object();
  if (entries == nullptr) fail(path, "model.vocab is not an object");
  const ByteAlphabet alphabet;
  std::vector<std::string> by_id;
  std::string bytes;
  for (const auto& [key, value] : *entries) {
    const std::string_view text = key;
    const auto id = static_cast<size_t>(checked_id(value, text, path));
    const auto special = specials.spelling_of(static_cast<int32_t>(id));
    // Some files list the special tokens here, too. Ordinary text must never become one.
    if (special == text) continue;
    if (!alphabet.decode(text, bytes) || bytes.empty()) {
      fail(path, "token \"{}\" is not spelled in the byte-level alphabet", text);
    }
    if (id >= by_id.size()) by_id.resize(id + 1);
    if (special || !by_id[id].empty())
      fail(path, "token \"{}\" has the id {} of another", text, id);
    by_id[id] = bytes;
  }
  TokenBytes tokens;
  tokens.reserve(by_id.size(), 8 * by_id.size());
  for (const std::string& token : by_id) tokens.add(token);
  auto vocabulary = Vocabulary::build(std::move(tokens), path);
  if (!vocabulary) throw UserError(vocabulary.error());
  return std::move(*vocabulary);
}

int32_t find(const Vocabulary& vocabulary, std::string_view bytes) {
  if (bytes.empty()) return kNoToken;
  return vocabulary.find(bytes.data(), bytes.size(), bytes.data() + bytes.size());
}

// In how many ways a token is two tokens joined.
size_t num_splits(const Vocabulary& vocabulary, std::string_view token) {
  size_t count = 0;
  for (size_t size = 1; size < token.size(); ++size) {
    count += find(vocabulary, token.substr(0, size)) != kNoToken &&
             find(vocabulary, token.substr(size)) != kNoToken;
  }
  return count;
}

// A merge is ["left", "right"] or, in older files, "left right".
bool decode_merge(const bj::value& merge, const ByteAlphabet& alphabet, std::string& left,
                  std::string& right) {
  if (const bj::array* pair = merge.if_array()) {
    return pair->size() == 2 && (*pair)[0].is_string() && (*pair)[1].is_string() &&
           alphabet.decode((*pair)[0].get_string(), left) &&
           alphabet.decode((*pair)[1].get_string(), right);
  }
  if (!merge.is_string()) return false;
  const std::string_view text = merge.get_string();
  const size_t space = text.find(' ');
  return space != text.npos && alphabet.decode(text.substr(0, space), left) &&
         alphabet.decode(text.substr(space + 1), right);
}

// Merging here goes by the rank of the joined token. That is what the list of merges says exactly
// if it holds every way to split every token, ordered by the id of the token.
void check_merges(const bj::value& model, const Vocabulary& vocabulary, const std::string& path) {
  const bj::array* merges = member(model, "merges").if_array();
  if (merges == nullptr) fail(path, "model.merges is not an array");
  const ByteAlphabet alphabet;
  std::string left, right;
  int32_t last_id = kNoToken;
  std::set<size_t> left_sizes;  // of the merges into last_id
  for (size_t i = 0; i < merges->size(); ++i) {
    if (!decode_merge((*merges)[i], alphabet, left, right)) {
      fail(path, "model.merges[{}] is not a pair of tokens", i);
    }
    const int32_t id = find(vocabulary, left + right);
    if (id == kNoToken || find(vocabulary, left) == kNoToken ||
        find(vocabulary, right) == kNoToken) {
      fail(path, "model.merges[{}] is not two tokens that make a third", i);
    }
    if (id != last_id) left_sizes.clear();
    if (id < last_id || !left_sizes.insert(left.size()).second) {
      fail(path, "model.merges[{}] is out of order: merges must be sorted by the id they make", i);
    }
    last_id = id;
  }
  size_t expected = 0;
  for (int32_t id = 0; id < vocabulary.tokens().size(); ++id) {
    expected += num_splits(vocabulary, vocabulary.tokens()[id]);
  }
  if (merges->size() != expected) {
    fail(path, "model.merges has {} entries, but the vocabulary implies {}", merges->size(),
         expected);
  }
}

HfTokenizer read_tokenizer(const bj::value& root, const std::string& path) {
  if (!root.is_object()) fail(path, "not a JSON object");
  check_settings(root, path);
  check_pre_tokenizer(root, path);
  HfTokenizer result;
  result.specials = read_added_tokens(root, path);
  result.vocabulary = read_vocabulary(member(root, "model"), result.specials, path);
  check_merges(member(root, "model"), result.vocabulary, path);
  return result;
}

}  // namespace

Result<HfTokenizer> parse_tokenizer_json(const std::string& path) {
  const auto root = json::parse_file(path);
  if (!root) return root.error();
  try {
    return read_tokenizer(*root, path);
  } catch (const UserError& e) {
    return e.error;
  }
}

}  // namespace briar
