// The byte strings of a BPE vocabulary and the fast way from bytes to id.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/short_key.h"

namespace briar {

inline constexpr int32_t kNoToken = -1;
inline constexpr int32_t kMaxVocabularySize = 1 << 24;  // so that ids fit bit fields

// Token byte strings by id, in one buffer. An empty string marks an id that is not a token.
class TokenBytes {
 public:
  void reserve(size_t num_tokens, size_t num_bytes);
  void add(std::string_view token);  // gets the next id
  int32_t size() const { return static_cast<int32_t>(ends_.size()); }
  std::string_view operator[](int32_t id) const {
    const size_t begin = id == 0 ? 0 : ends_[static_cast<size_t>(id) - 1];
    return std::string_view(bytes_).substr(begin, ends_[static_cast<size_t>(id)] - begin);
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;
};

struct VocabularyRules {
  bool needs_all_bytes = true;  // refuse a vocabulary that lacks a single byte
  // By id: 1 for tokens that find() must not see, because no text becomes them by itself. Empty:
  // none.
  std::vector<uint8_t> is_hidden = {};
};

// The ordinary (mergeable) tokens. Without a MergeTable, the id of a token is also its merge rank.
class Vocabulary {
 public:
  // `source` names the vocabulary in errors. Refuses a token that occurs twice and a vocabulary
  // with more than kMaxVocabularySize ids.
  static Result<Vocabulary> build(TokenBytes tokens, std::string_view source,
                                  const VocabularyRules& rules = {});

  const TokenBytes& tokens() const { return tokens_; }
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }
  // Of the token of these two bytes, or kNoToken.
  int32_t byte_pair_id(uint8_t first, uint8_t second) const {
    return byte_pair_ids_[size_t{first} << 8 | second];
  }

  // The id of the token of `size` >= 1 bytes at `p`, or kNoToken. The memory up to `readable_end`
  // may be read.
  int32_t find(const char* p, size_t size, const char* readable_end) const {
    if (size > kMaxShortKey) return find_long({p, size});
    const ShortKey key = load_short_key(p, size, readable_end);
    return find_short(key, hash_of(key));
  }

  // The same, faster if there probably is no such token: a small filter, which stays in the cache,
  // answers for most that are none.
  int32_t find_unlikely(const char* p, size_t size, const char* readable_end) const {
    if (size > kMaxShortKey) return find_long({p, size});
    const ShortKey key = load_short_key(p, size, readable_end);
    const uint64_t hash = hash_of(key);
    if ((filter_[filter_word(hash)] >> (hash & 63) & 1) == 0) return kNoToken;
    return find_short(key, hash);
  }

  // The two halves of find(), for callers that need the key themselves. `hash` is the key's.
  int32_t find_short(ShortKey key, uint64_t hash) const;
  int32_t find_long(std::string_view bytes) const;

 private:
  // Nearly all tokens are short enough for their bytes to be the key itself, so that one cache line
  // answers both "which id" and "no such token".
  struct alignas(64) Bucket {
    static constexpr int kSlots = 3;
    ShortKey keys[kSlots] = {};
    int32_t ids[kSlots] = {kNoToken, kNoToken, kNoToken};
    bool has_overflowed = false;  // a key that belongs here may be in the next bucket
  };

  void allocate(TokenBytes tokens);
  void fill_byte_tables(const VocabularyRules& rules);
  static uint64_t hash_long(std::string_view bytes);
  // Independent of the bits that choose the bucket.
  static size_t filter_word(uint64_t hash) { return hash >> 6 & (kFilterWords - 1); }
  bool insert(std::string_view token, int32_t id);
  bool insert_short(ShortKey key, int32_t id);
  bool insert_long(std::string_view token, int32_t id);

  TokenBytes tokens_;
  // One bit for each short token, by its hash: 256 KiB, so 200,000 tokens set a tenth of the bits.
  static constexpr size_t kFilterWords = size_t{1} << 15;
  std::vector<uint64_t> filter_;
  std::vector<Bucket> buckets_;      // a power of two of them
  int bucket_shift_ = 0;             // hash >> bucket_shift_ is the home bucket
  std::vector<int32_t> long_slots_;  // ids of the longer tokens, open addressing, a power of two
  size_t max_size_ = 0;              // bytes of the longest token
  std::array<int32_t, 256> byte_ids_{};
  std::vector<int32_t> byte_pair_ids_;  // [65536]
};

inline int32_t Vocabulary::find_short(ShortKey key, uint64_t hash) const {
  size_t index = hash >> bucket_shift_;
  while (true) {
    const Bucket& bucket = buckets_[index];
    for (int i = 0; i < Bucket::kSlots; ++i) {
      if (bucket.keys[i] == key) return bucket.ids[i];
    }
    if (!bucket.has_overflowed) [[likely]]
      return kNoToken;
    index = (index + 1) & (buckets_.size() - 1);
  }
}

}  // namespace briar
