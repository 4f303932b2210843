#include "tokenizer/json_parts.h"

#include <set>

#include "tokenizer/space_mark.h"

namespace briar::tokenizer_json {
namespace {

std::string type_of(const bj::value& step) {
  const bj::string* type = member(step, "type").if_string();
  return type != nullptr ? std::string(*type) : bj::serialize(step);
}

void add_split(const bj::value& step, const std::string& path, Splitter& splitter) {
  const bj::string* regex = member(member(step, "pattern"), "Regex").if_string();
  if (regex == nullptr) {
    fail(path, "the Split at {} is not by a regular expression; no other is supported",
         bj::serialize(member(step, "pattern")));
  }
  const bool is_inverted = flag(step, "invert", false);
  // Taking only the matches is the same as isolating them where everything is matched, as all
  // patterns in use do; Isolated loses nothing where it is not.
  const bool is_isolated = is_string(member(step, "behavior"), "Isolated") && !is_inverted;
  const bool is_matches = is_string(member(step, "behavior"), "Removed") && is_inverted;
  if (!is_isolated && !is_matches) {
    fail(path, "the Split has the behavior {}{}, only \"Isolated\" is supported",
         bj::serialize(member(step, "behavior")), is_inverted ? ", inverted" : "");
  }
  if (auto status = splitter.add_regex(std::string_view(*regex)); !status) {
    fail(path, "{}", status.error().message);
  }
}

// Metaspace: spaces are marks, and a word begins with one.
void read_metaspace(const bj::value& step, const std::string& path, TokenizerParts& parts) {
  if (!is_string(member(step, "replacement"), kSpaceMark)) {
    fail(path, "Metaspace has the replacement {}, only U+2581 is supported",
         bj::serialize(member(step, "replacement")));
  }
  using Prefix = Normalizer::SpacePrefix;
  const bj::value& scheme = member(step, "prepend_scheme");
  if (is_string(scheme, "never")) {
    parts.normalizer.prefix = Prefix::kNone;
  } else if (is_string(scheme, "first")) {
    parts.normalizer.prefix = Prefix::kFirst;
  } else {
    const bool adds = is_string(scheme, "always") || flag(step, "add_prefix_space", true);
    parts.normalizer.prefix = adds ? Prefix::kAlways : Prefix::kNone;
  }
  parts.normalizer.adds_second_space = false;
  parts.normalizer.has_space_marks = true;
  if (flag(step, "split", true)) parts.splitter.add(space_piece_end);
}

// Returns whether the step is ByteLevel.
bool read_pre_tokenizer(const bj::value& step, const std::string& path, TokenizerParts& parts) {
  const std::string type = type_of(step);
  if (type == "Split") {
    add_split(step, path, parts.splitter);
  } else if (type == "Digits") {
    parts.splitter.add(flag(step, "individual_digits", false) ? single_digit_piece_end
                                                              : digits_piece_end);
  } else if (type == "Metaspace") {
    read_metaspace(step, path, parts);
  } else if (type == "ByteLevel") {
    if (flag(step, "add_prefix_space", true)) {
      fail(path, "ByteLevel adds a space before the text, which is not supported");
    }
    if (flag(step, "use_regex", true)) parts.splitter.add(gpt2_piece_end);
    return true;
  } else {
    fail(path, "the pre_tokenizer {} is not supported; known: Split, Digits, ByteLevel, Metaspace",
         type);
  }
  return false;
}

void read_normalizer(const bj::value& step, const std::string& path, Normalizer& normalizer) {
  const std::string type = type_of(step);
  if (type == "NFC") {
    normalizer.is_nfc = true;
  } else if (type == "Prepend" && is_string(member(step, "prepend"), kSpaceMark)) {
    normalizer.prefix = Normalizer::SpacePrefix::kAlways;
  } else if (type == "Replace" && is_string(member(member(step, "pattern"), "String"), " ") &&
             is_string(member(step, "content"), kSpaceMark)) {
    normalizer.has_space_marks = true;
  } else {
    fail(path, "the normalizer {} is not supported; known: NFC, and a space as U+2581",
         bj::serialize(step));
  }
}

// The spelling of an id or a token that the post_processor names.
std::optional<int32_t> first_special(const bj::value& processor) {
  const bj::array* single = member(processor, "single").if_array();
  if (single == nullptr || single->empty()) return std::nullopt;
  const bj::string* name = member(member(single->front(), "SpecialToken"), "id").if_string();
  if (name == nullptr) return std::nullopt;
  const bj::value& token = member(member(processor, "special_tokens"), *name);
  const bj::array* ids = member(token, "ids").if_array();
  if (ids == nullptr || ids->size() != 1 || !ids->front().is_int64()) return std::nullopt;
  return static_cast<int32_t>(ids->front().get_int64());
}

}  // namespace

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

bool flag(const bj::value& value, std::string_view key, bool otherwise) {
  const bj::value& found = member(value, key);
  return found.is_bool() ? found.get_bool() : otherwise;
}

std::vector<const bj::value*> sequence_of(const bj::value& value, std::string_view list_key) {
  std::vector<const bj::value*> out;
  if (value.is_null()) return out;
  if (!is_string(member(value, "type"), "Sequence")) return {&value};
  if (const bj::array* list = member(value, list_key).if_array()) {
    for (const bj::value& item : *list) out.push_back(&item);
  }
  return out;
}

bool read_splits(const bj::value& root, const std::string& path, TokenizerParts& parts) {
  for (const bj::value* step : sequence_of(member(root, "normalizer"), "normalizers")) {
    read_normalizer(*step, path, parts.normalizer);
  }
  bool is_byte_level = false;
  for (const bj::value* step : sequence_of(member(root, "pre_tokenizer"), "pretokenizers")) {
    if (is_byte_level) fail(path, "the pre_tokenizer goes on behind ByteLevel");
    is_byte_level = read_pre_tokenizer(*step, path, parts);
  }
  if (is_byte_level && parts.normalizer.has_space_marks) {
    fail(path, "a byte-level vocabulary with spaces as U+2581 is not supported");
  }
  return is_byte_level;
}

std::optional<int32_t> read_bos_id(const bj::value& root, const AddedTokens& added,
                                   const std::string& path) {
  for (const bj::value* step : sequence_of(member(root, "post_processor"), "processors")) {
    if (!is_string(member(*step, "type"), "TemplateProcessing")) continue;
    const auto id = first_special(*step);
    if (!id) continue;
    if (!added.structure().spelling_of(*id)) {
      fail(path, "the post_processor puts the token {} first, which is not a special token", *id);
    }
    return id;
  }
  return std::nullopt;
}

int32_t checked_id(const bj::value& value, std::string_view token, const std::string& path) {
  const int64_t id = value.is_int64() ? value.get_int64() : -1;
  if (id < 0 || id >= kMaxVocabularySize) {
    fail(path, "the id of token \"{}\" is {}, not a number in [0, {})", token, bj::serialize(value),
         kMaxVocabularySize);
  }
  return static_cast<int32_t>(id);
}

AddedTokens read_added_tokens(const bj::value& root, const std::string& path) {
  std::vector<AddedToken> tokens;
  const bj::value& added = member(root, "added_tokens");
  if (added.is_null()) return {};
  if (!added.is_array()) fail(path, "added_tokens is not an array");
  std::set<std::string> spellings;
  for (size_t i = 0; i < added.get_array().size(); ++i) {
    const bj::value& token = added.get_array()[i];
    const bj::string* content = member(token, "content").if_string();
    if (content == nullptr || content->empty()) {
      fail(path, "added_tokens[{}] has no content", i);
    }
    const std::string spelling(*content);
    if (!spellings.insert(spelling).second) {
      fail(path, "added token \"{}\" is there twice", spelling);
    }
    tokens.push_back({.spelling = spelling,
                      .id = checked_id(member(token, "id"), spelling, path),
                      .is_special = is_true(member(token, "special")),
                      .strips_left = is_true(member(token, "lstrip")),
                      .strips_right = is_true(member(token, "rstrip")),
                      .is_single_word = is_true(member(token, "single_word")),
                      .is_normalized = is_true(member(token, "normalized"))});
  }
  return AddedTokens(std::move(tokens));
}

}  // namespace briar::tokenizer_json
