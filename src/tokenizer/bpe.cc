#include "tokenizer/bpe.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <span>

#include "tokenizer/utf8.h"

namespace briar {
namespace {

// Longer pieces use the heap: scanning for the minimum is quadratic, but faster while it is short.
constexpr size_t kMaxScan = 64;

constexpr size_t kCacheSlots = 4096;
constexpr size_t kMinCachedText = size_t{64} << 10;

// What the two merges below ask of a piece: its symbols (known by their index), and the rank of the
// join of two adjacent parts, of which one is the symbols [begin, middle) and has the id `left`,
// the other [middle, end) with the id `right`. This one joins parts whose concatenation is a token;
// the symbols are bytes, and the rank of a join is the id that it makes.
class TextJoins {
 public:
  TextJoins(const Vocabulary& vocabulary, std::string_view piece, const char* readable_end)
      : vocabulary_(vocabulary), piece_(piece), readable_end_(readable_end) {}

  size_t size() const { return piece_.size(); }
  int32_t symbol_id(size_t i) const { return vocabulary_.byte_id(byte(i)); }
  int32_t symbol_pair_rank(size_t i) const {
    return vocabulary_.byte_pair_id(byte(i), byte(i + 1));
  }
  int32_t rank(size_t begin, size_t end, int32_t /*left*/, int32_t /*right*/) const {
    return vocabulary_.find_unlikely(piece_.data() + begin, end - begin, readable_end_);
  }
  int32_t id_of_rank(int32_t rank) const { return rank; }

 private:
  uint8_t byte(size_t i) const { return static_cast<uint8_t>(piece_[i]); }

  const Vocabulary& vocabulary_;
  std::string_view piece_;
  const char* readable_end_;
};

// This one joins the pairs of a table.
class TableJoins {
 public:
  TableJoins(const MergeTable& table, std::span<const int32_t> symbols)
      : table_(table), symbols_(symbols) {}

  size_t size() const { return symbols_.size(); }
  int32_t symbol_id(size_t i) const { return symbols_[i]; }
  int32_t symbol_pair_rank(size_t i) const { return table_.rank(symbols_[i], symbols_[i + 1]); }
  int32_t rank(size_t /*begin*/, size_t /*end*/, int32_t left, int32_t right) const {
    return table_.rank(left, right);
  }
  int32_t id_of_rank(int32_t rank) const { return table_.id_of_rank(rank); }

 private:
  const MergeTable& table_;
  std::span<const int32_t> symbols_;
};

// The state of a short piece. Parts are known by the index of their first symbol, as in HeapMerge.
// keys[i] is the rank of the join of part i and the next one, and i in the low bits: the least key
// is the next join. kNoKey: the join is no token, or part i is gone.
template <class Joins>
class ScanMerge {
 public:
  explicit ScanMerge(const Joins& joins) : joins_(joins) {
    const size_t size = joins.size();
    std::fill_n(keys_, kMaxScan, kNoKey);
    for (size_t i = 0; i < size; ++i) {
      ids_[i] = joins.symbol_id(i);
      next_[i] = static_cast<uint8_t>(i + 1);
      previous_[i + 1] = static_cast<uint8_t>(i);
      if (i + 1 < size) keys_[i] = key(joins.symbol_pair_rank(i), i);
    }
  }

  void run(std::vector<int32_t>& out) {
    for (int32_t least = least_key(); least != kNoKey; least = least_key()) join(least);
    for (size_t i = 0; i < joins_.size(); i = next_[i]) out.push_back(ids_[i]);
  }

 private:
  static constexpr int kPositionBits = 6;
  static_assert(kMaxScan == size_t{1} << kPositionBits && kMaxVocabularySize << kPositionBits > 0);
  static constexpr int32_t kNoKey = std::numeric_limits<int32_t>::max();
  static constexpr size_t kLanes = 4;
  using Lanes [[gnu::vector_size(16)]] = int32_t;  // GCC turns its ?: into SSE2 compares and blends

  static int32_t key(int32_t rank, size_t position) {
    return rank == kNoToken ? kNoKey : rank << kPositionBits | static_cast<int32_t>(position);
  }

  int32_t least_key() const {
    Lanes least = load(0);
    for (size_t i = kLanes; i < joins_.size(); i += kLanes) {
      const Lanes keys = load(i);
      least = keys < least ? keys : least;
    }
    return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
  }

  Lanes load(size_t i) const {
    Lanes lanes;
    std::memcpy(&lanes, &keys_[i], sizeof(lanes));
    return lanes;
  }

  void join(int32_t least) {
    const size_t position = static_cast<size_t>(least) & (kMaxScan - 1);
    const size_t gone = next_[position];
    const size_t end = next_[gone];
    const int32_t id = joins_.id_of_rank(least >> kPositionBits);
    ids_[position] = id;
    keys_[gone] = kNoKey;
    next_[position] = static_cast<uint8_t>(end);
    previous_[end] = static_cast<uint8_t>(position);
    keys_[position] = end < joins_.size()
                          ? key(joins_.rank(position, next_[end], id, ids_[end]), position)
                          : kNoKey;
    if (position == 0) return;
    const size_t before = previous_[position];
    keys_[before] = key(joins_.rank(before, end, ids_[before], id), before);
  }

  const Joins& joins_;
  alignas(16) int32_t keys_[kMaxScan];
  int32_t ids_[kMaxScan];
  uint8_t next_[kMaxScan];  // also where this part ends
  uint8_t previous_[kMaxScan + 1];
};

// The parts of a long piece are a linked list by the index of their first symbol; a heap holds the
// candidate joins, ordered by (rank, position). An entry is stale if its rank is no longer that of
// the join at its position: joins there only get longer, so no rank comes back.
template <class Joins>
class HeapMerge {
 public:
  explicit HeapMerge(const Joins& joins) : joins_(joins), parts_(joins.size()) {
    CHECK_LT(joins.size(), kEnd, "a piece of 4 GiB");
    for (uint32_t i = 0; i < parts_.size(); ++i) {
      const bool is_last = i + 1 == parts_.size();
      parts_[i] = {.previous = i == 0 ? kEnd : i - 1,
                   .next = i + 1,
                   .id = joins.symbol_id(i),
                   .join_rank = is_last ? kNoToken : joins.symbol_pair_rank(i)};
      if (parts_[i].join_rank != kNoToken) heap_.push_back(entry(i));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  void run(std::vector<int32_t>& out) {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const uint64_t top = heap_.back();
      heap_.pop_back();
      const auto position = static_cast<uint32_t>(top);
      if (parts_[position].join_rank == static_cast<int32_t>(top >> 32)) join(position);
    }
    for (uint32_t i = 0; i < parts_.size(); i = parts_[i].next) out.push_back(parts_[i].id);
  }

 private:
  static constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
  struct Part {
    uint32_t previous;
    uint32_t next;  // also where this part ends
    int32_t id;
    int32_t join_rank;  // of this part and the next; kNoToken also when this part is gone
  };

  uint64_t entry(uint32_t position) const {
    return static_cast<uint64_t>(parts_[position].join_rank) << 32 | position;
  }

  void join(uint32_t position) {
    Part& part = parts_[position];
    Part& gone = parts_[part.next];
    part.id = joins_.id_of_rank(part.join_rank);
    part.next = gone.next;
    gone.join_rank = kNoToken;
    if (part.next < parts_.size()) parts_[part.next].previous = position;
    update_join(position);
    if (part.previous != kEnd) update_join(part.previous);
  }

  void update_join(uint32_t position) {
    Part& part = parts_[position];
    if (part.next >= parts_.size()) {
      part.join_rank = kNoToken;
      return;
    }
    const Part& next = parts_[part.next];
    part.join_rank = joins_.rank(position, next.next, part.id, next.id);
    if (part.join_rank == kNoToken) return;
    heap_.push_back(entry(position));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const Joins& joins_;
  std::vector<Part> parts_;
  std::vector<uint64_t> heap_;
};

template <class Joins>
void run_merge(const Joins& joins, std::vector<int32_t>& out) {
  joins.size() <= kMaxScan ? ScanMerge(joins).run(out) : HeapMerge(joins).run(out);
}

}  // namespace

PieceEncoder::PieceEncoder(const BpeModel& model, const char* text_end, size_t text_size)
    : model_(model), vocabulary_(model.vocabulary), text_end_(text_end) {
  if (text_size >= kMinCachedText) cache_.resize(kCacheSlots);
}

void PieceEncoder::encode(std::string_view piece, std::vector<int32_t>& out) {
  if (piece.size() > kMaxShortKey) {
    const int32_t id = vocabulary_.find_long(piece);
    return id != kNoToken ? out.push_back(id) : merge(piece, out);
  }
  const ShortKey key = load_short_key(piece.data(), piece.size(), text_end_);
  const uint64_t hash = hash_of(key);
  const int32_t id = vocabulary_.find_short(key, hash);
  if (id != kNoToken) [[likely]]
    return out.push_back(id);
  cache_.empty() ? merge(piece, out) : encode_cached(piece, key, hash, out);
}

void PieceEncoder::encode_cached(std::string_view piece, ShortKey key, uint64_t hash,
                                 std::vector<int32_t>& out) {
  Cached& cached = cache_[hash & (kCacheSlots - 1)];
  if (cached.key == key) {
    out.insert(out.end(), cached.ids, cached.ids + cached.num_ids);
    return;
  }
  const size_t begin = out.size();
  merge(piece, out);
  if (out.size() - begin > Cached::kMaxIds) return;
  cached.key = key;
  cached.num_ids = static_cast<uint32_t>(out.size() - begin);
  std::copy(out.begin() + static_cast<ptrdiff_t>(begin), out.end(), cached.ids);
}

void PieceEncoder::merge(std::string_view piece, std::vector<int32_t>& out) {
  if (!model_.merges) return run_merge(TextJoins(vocabulary_, piece, text_end_), out);
  symbols_.clear();
  append_symbols(piece);
  if (!symbols_.empty()) run_merge(TableJoins(*model_.merges, symbols_), out);
}

void PieceEncoder::append_symbols(std::string_view piece) {
  if (!model_.has_character_symbols) {
    for (const char c : piece) {
      const int32_t id = vocabulary_.byte_id(static_cast<uint8_t>(c));
      id != kNoToken ? symbols_.push_back(id) : append_unknown();
    }
    return;
  }
  const char* const end = piece.data() + piece.size();
  for (const char* p = piece.data(); p < end;) {
    const size_t size = decode_utf8_char(p, end).length;
    const int32_t id = vocabulary_.find(p, size, text_end_);
    id != kNoToken ? symbols_.push_back(id) : append_fallback({p, size});
    p += size;
  }
}

void PieceEncoder::append_fallback(std::string_view character) {
  const auto id_of = [&](char c) { return model_.byte_fallback_ids[static_cast<uint8_t>(c)]; };
  const bool has_bytes =
      std::all_of(character.begin(), character.end(), [&](char c) { return id_of(c) != kNoToken; });
  if (!has_bytes) return append_unknown();
  for (const char c : character) symbols_.push_back(id_of(c));
}

void PieceEncoder::append_unknown() {
  const int32_t id = model_.unknown_id;
  if (id == kNoToken) return;
  if (model_.fuses_unknown && !symbols_.empty() && symbols_.back() == id) return;
  symbols_.push_back(id);
}

}  // namespace briar
