// Reading tokenizer.json: helpers, and the parts around the model. These functions throw UserError
// for what this tokenizer would not do exactly; parse_tokenizer_json() catches it.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "tokenizer/loaders.h"

namespace briar::tokenizer_json {

namespace bj = boost::json;

// The member `key`, or null if `value` is no object or has no such member.
const bj::value& member(const bj::value& value, std::string_view key);
bool is_string(const bj::value& value, std::string_view text);
bool is_true(const bj::value& value);
bool flag(const bj::value& value, std::string_view key, bool otherwise);

// A list, however it is written: of the members named `list_key` of a {"type": "Sequence"}, the one
// value, or nothing for null.
std::vector<const bj::value*> sequence_of(const bj::value& value, std::string_view list_key);

template <class... Args>
[[noreturn]] void fail(const std::string& path, fmt::format_string<Args...> text, Args&&... args) {
  throw_user_error("{}: {}", path, fmt::format(text, std::forward<Args>(args)...));
}

// The pre_tokenizer and the normalizer. Returns whether the vocabulary is spelled in the byte-level
// alphabet.
bool read_splits(const bj::value& root, const std::string& path, TokenizerParts& parts);

// The token that the post_processor puts before every text.
std::optional<int32_t> read_bos_id(const bj::value& root, const AddedTokens& added,
                                   const std::string& path);

AddedTokens read_added_tokens(const bj::value& root, const std::string& path);

int32_t checked_id(const bj::value& value, std::string_view token, const std::string& path);

}  // namespace briar::tokenizer_json
