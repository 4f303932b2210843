#include "tokenizer/vocabulary.h"

#include <bit>
#include <cstring>

namespace briar {

void TokenBytes::reserve(size_t num_tokens, size_t num_bytes) {
  ends_.reserve(num_tokens);
  bytes_.reserve(num_bytes);
}

void TokenBytes::add(std::string_view token) {
  bytes_ += token;
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
}

namespace {

bool is_hidden(const VocabularyRules& rules, int32_t id) {
  return !rules.is_hidden.empty() && rules.is_hidden[static_cast<size_t>(id)] != 0;
}

}  // namespace

Result<Vocabulary> Vocabulary::build(TokenBytes tokens, std::string_view source,
                                     const VocabularyRules& rules) {
  if (tokens.size() > kMaxVocabularySize) {
    return make_error("{}: {} token ids exceed the limit of {}", source, tokens.size(),
                      kMaxVocabularySize);
  }
  Vocabulary vocabulary;
  vocabulary.allocate(std::move(tokens));
  const TokenBytes& all = vocabulary.tokens_;
  for (int32_t id = 0; id < all.size(); ++id) {
    if (all[id].empty() || is_hidden(rules, id)) continue;
    if (!vocabulary.insert(all[id], id)) {
      return make_error("{}: token {} has the same bytes as an earlier one", source, id);
    }
  }
  vocabulary.fill_byte_tables(rules);
  if (!rules.needs_all_bytes) return vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    if (vocabulary.byte_id(static_cast<uint8_t>(byte)) == kNoToken) {
      return make_error("{}: the vocabulary has no token for the single byte 0x{:02x}", source,
                        byte);
    }
  }
  return vocabulary;
}

void Vocabulary::allocate(TokenBytes tokens) {
  tokens_ = std::move(tokens);
  size_t num_short = 0;
  size_t num_long = 0;
  for (int32_t id = 0; id < tokens_.size(); ++id) {
    (tokens_[id].size() <= kMaxShortKey ? num_short : num_long) += 1;
    max_size_ = std::max(max_size_, tokens_[id].size());
  }
  // At most two keys for the three slots of a bucket, so few lookups see a second bucket.
  const size_t num_buckets = std::bit_ceil(std::max<size_t>(num_short / 2, 2));
  buckets_.resize(num_buckets);
  filter_.assign(kFilterWords, 0);
  bucket_shift_ = 64 - std::countr_zero(num_buckets);
  long_slots_.assign(std::bit_ceil(std::max<size_t>(num_long * 4, 2)), kNoToken);
}

void Vocabulary::fill_byte_tables(const VocabularyRules& rules) {
  byte_ids_.fill(kNoToken);
  byte_pair_ids_.assign(size_t{1} << 16, kNoToken);
  for (int32_t id = 0; id < tokens_.size(); ++id) {
    const std::string_view token = tokens_[id];
    if (is_hidden(rules, id)) continue;
    const auto byte = [&](size_t i) { return size_t{static_cast<uint8_t>(token[i])}; };
    if (token.size() == 1) byte_ids_[byte(0)] = id;
    if (token.size() == 2) byte_pair_ids_[byte(0) << 8 | byte(1)] = id;
  }
}

bool Vocabulary::insert(std::string_view token, int32_t id) {
  if (token.size() > kMaxShortKey) return insert_long(token, id);
  return insert_short(load_short_key(token.data(), token.size(), token.data() + token.size()), id);
}

bool Vocabulary::insert_short(ShortKey key, int32_t id) {
  const uint64_t hash = hash_of(key);
  filter_[filter_word(hash)] |= uint64_t{1} << (hash & 63);
  size_t index = hash >> bucket_shift_;
  while (true) {
    Bucket& bucket = buckets_[index];
    for (int i = 0; i < Bucket::kSlots; ++i) {
      if (bucket.keys[i].is_empty()) {
        bucket.keys[i] = key;
        bucket.ids[i] = id;
        return true;
      }
      if (bucket.keys[i] == key) return false;
    }
    bucket.has_overflowed = true;
    index = (index + 1) & (buckets_.size() - 1);
  }
}

uint64_t Vocabulary::hash_long(std::string_view bytes) {
  uint64_t hash = bytes.size();
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = hash_of({hash, word});
  }
  uint64_t tail = 0;
  std::memcpy(&tail, bytes.data() + i, bytes.size() - i);
  return hash_of({hash, tail});
}

int32_t Vocabulary::find_long(std::string_view bytes) const {
  if (bytes.size() > max_size_) return kNoToken;
  const size_t mask = long_slots_.size() - 1;
  for (size_t i = hash_long(bytes) & mask;; i = (i + 1) & mask) {
    const int32_t id = long_slots_[i];
    if (id == kNoToken || tokens_[id] == bytes) return id;
  }
}

bool Vocabulary::insert_long(std::string_view token, int32_t id) {
  const size_t mask = long_slots_.size() - 1;
  size_t i = hash_long(token) & mask;
  for (; long_slots_[i] != kNoToken; i = (i + 1) & mask) {
    if (tokens_[long_slots_[i]] == token) return false;
  }
  long_slots_[i] = id;
  return true;
}

}  // namespace briar
