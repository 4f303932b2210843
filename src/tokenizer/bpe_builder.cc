#include "tokenizer/bpe_builder.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tokenizer/utf8.h"

namespace briar {
namespace {

int32_t find(const Vocabulary& vocabulary, std::string_view bytes) {
  if (bytes.empty()) return kNoToken;
  return vocabulary.find(bytes.data(), bytes.size(), bytes.data() + bytes.size());
}

struct Merge {
  int32_t left, right, id;
  size_t left_size;  // bytes
};

Result<std::vector<Merge>> find_merges(const BpeLists& lists, const Vocabulary& vocabulary,
                                       std::string_view source) {
  std::vector<Merge> merges;
  merges.reserve(lists.merges.size());
  for (const auto& [left, right] : lists.merges) {
    const Merge merge{.left = find(vocabulary, left),
                      .right = find(vocabulary, right),
                      .id = find(vocabulary, left + right),
                      .left_size = left.size()};
    if (merge.left == kNoToken || merge.right == kNoToken || merge.id == kNoToken) {
      return make_error("{}: merge {} is not two tokens that make a third", source, merges.size());
    }
    merges.push_back(merge);
  }
  return merges;
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

bool has_all_bytes(const Vocabulary& vocabulary) {
  for (int byte = 0; byte < 256; ++byte) {
    if (vocabulary.byte_id(static_cast<uint8_t>(byte)) == kNoToken) return false;
  }
  return true;
}

// Whether merging by the id of the joined token is what the list of merges says: it holds every way
// to split every token, ordered by the id of the token.
bool are_implied(const std::vector<Merge>& merges, const Vocabulary& vocabulary) {
  int32_t last_id = kNoToken;
  std::set<size_t> left_sizes;  // of the merges into last_id
  for (const Merge& merge : merges) {
    if (merge.id != last_id) left_sizes.clear();
    if (merge.id < last_id || !left_sizes.insert(merge.left_size).second) return false;
    last_id = merge.id;
  }
  size_t expected = 0;
  for (int32_t id = 0; id < vocabulary.tokens().size(); ++id) {
    expected += num_splits(vocabulary, vocabulary.tokens()[id]);
  }
  return merges.size() == expected;
}

Result<MergeTable> table_of(const std::vector<Merge>& merges, std::string_view source) {
  MergeTable table(merges.size());
  for (const Merge& merge : merges) {
    if (!table.add(merge.left, merge.right, table.num_ranks(), merge.id)) {
      return make_error("{}: merge {} is there twice", source, table.num_ranks());
    }
  }
  return table;
}

// All ways to split a token, at the rank of its score.
MergeTable table_of_scores(const BpeLists& lists, const Vocabulary& vocabulary) {
  std::vector<int32_t> ids(static_cast<size_t>(vocabulary.tokens().size()));
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    return lists.scores[static_cast<size_t>(a)] > lists.scores[static_cast<size_t>(b)];
  });
  size_t num_merges = 0;
  for (const int32_t id : ids) num_merges += num_splits(vocabulary, vocabulary.tokens()[id]);
  MergeTable table(num_merges);
  for (const int32_t id : ids) {
    const std::string_view token = vocabulary.tokens()[id];
    if (find(vocabulary, token) != id) continue;  // hidden
    const int32_t rank = table.num_ranks();
    for (size_t size = 1; size < token.size(); ++size) {
      const int32_t left = find(vocabulary, token.substr(0, size));
      const int32_t right = find(vocabulary, token.substr(size));
      if (left != kNoToken && right != kNoToken) table.add(left, right, rank, id);
    }
  }
  return table;
}

// Hides tokens that no merges lead to: a piece with their bytes becomes something else.
void hide_unreachable(const BpeModel& model, std::vector<uint8_t>& is_hidden) {
  const TokenBytes& tokens = model.vocabulary.tokens();
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    if (token.empty() || is_hidden[static_cast<size_t>(id)]) continue;
    ids.clear();
    PieceEncoder(model, token.data() + token.size(), token.size()).merge(token, ids);
    is_hidden[static_cast<size_t>(id)] = ids.size() != 1 || ids[0] != id;
  }
}

// Looking for a token's splits takes quadratic time in its length.
Status check_sizes(const std::vector<std::string>& tokens, std::string_view source) {
  constexpr size_t kMaxTokenBytes = 1024;  // the longest in use are runs of 128 spaces
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].size() > kMaxTokenBytes) {
      return make_error("{}: token {} has {} bytes, the limit is {}", source, id, tokens[id].size(),
                        kMaxTokenBytes);
    }
  }
  return Ok{};
}

Result<Vocabulary> build_vocabulary(const std::vector<std::string>& tokens,
                                    std::vector<uint8_t> is_hidden, std::string_view source) {
  TokenBytes bytes;
  bytes.reserve(tokens.size(), 8 * tokens.size());
  for (const std::string& token : tokens) bytes.add(token);
  return Vocabulary::build(std::move(bytes), source,
                           {.needs_all_bytes = false, .is_hidden = std::move(is_hidden)});
}

}  // namespace

Result<BpeModel> build_bpe(BpeLists lists, std::string_view source) {
  CHECK(lists.scores.empty() || lists.scores.size() == lists.tokens.size(), "{} scores, {} tokens",
        lists.scores.size(), lists.tokens.size());
  if (auto status = check_sizes(lists.tokens, source); !status) return status.error();
  lists.is_hidden.resize(lists.tokens.size(), 0);
  auto vocabulary = build_vocabulary(lists.tokens, lists.is_hidden, source);
  if (!vocabulary) return vocabulary.error();
  BpeModel model{.vocabulary = std::move(*vocabulary),
                 .merges = {},
                 .has_character_symbols = lists.has_character_symbols,
                 .byte_fallback_ids = lists.byte_fallback_ids,
                 .unknown_id = lists.unknown_id,
                 .fuses_unknown = lists.fuses_unknown};
  if (!lists.scores.empty()) {
    model.merges = table_of_scores(lists, model.vocabulary);
  } else {
    const auto merges = find_merges(lists, model.vocabulary, source);
    if (!merges) return merges.error();
    if (lists.takes_tokens_whole && !lists.has_character_symbols &&
        has_all_bytes(model.vocabulary) && are_implied(*merges, model.vocabulary)) {
      return model;
    }
    auto table = table_of(*merges, source);
    if (!table) return table.error();
    model.merges = std::move(*table);
  }
  if (lists.takes_tokens_whole) return model;
  std::vector<uint8_t> is_hidden = lists.is_hidden;
  hide_unreachable(model, is_hidden);
  if (is_hidden == lists.is_hidden) return model;
  auto rebuilt = build_vocabulary(lists.tokens, std::move(is_hidden), source);
  if (!rebuilt) return rebuilt.error();
  model.vocabulary = std::move(*rebuilt);
  return model;
}

}  // namespace briar
