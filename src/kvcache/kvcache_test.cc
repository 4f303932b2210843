#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <list>
#include <map>
#include <random>

#include "base/check.h"
#include "kvcache/page_key.h"
#include "kvcache/page_pool.h"
#include "kvcache/sequence_pages.h"

namespace briar {
namespace {

PageKey key_of(int n) {
  const int32_t token = n;
  return next_page_key(root_page_key(""), std::span(&token, 1));
}

TEST(PageKey, DependsOnTokensOrderPrefixAndSalt) {
  const std::array<int32_t, 3> abc = {1, 2, 3}, acb = {1, 3, 2};
  const PageKey root = root_page_key(""), salted = root_page_key("tenant-1");
  EXPECT_EQ(next_page_key(root, abc), next_page_key(root, abc));
  EXPECT_FALSE(next_page_key(root, abc) == next_page_key(root, acb));
  EXPECT_FALSE(next_page_key(root, abc) == next_page_key(salted, abc));
  EXPECT_FALSE(next_page_key(next_page_key(root, abc), acb) ==
               next_page_key(next_page_key(root, acb), acb));
}

TEST(PagePool, HandsOutEveryPageOnceAndThenNone) {
  PagePool pool(3);
  std::vector<int32_t> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(*pool.allocate());
  EXPECT_FALSE(pool.allocate().has_value());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 1, 2}));
  pool.release(1);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_FALSE(PagePool(0).allocate().has_value());
  pool.check_invariants();
}

TEST(PagePool, MisuseIsCaught) {
  PagePool pool(2);
  const int32_t page = *pool.allocate();
  pool.release(page);
  EXPECT_THROW(pool.release(page), CheckError);
  EXPECT_THROW(pool.share(page), CheckError);
  EXPECT_THROW(pool.publish(page, key_of(1)), CheckError);
  EXPECT_THROW(pool.release(7), CheckError);
}

TEST(PagePool, EvictsTheLeastRecentlyReleasedAndForgetsIt) {
  PagePool pool(3);
  std::array<int32_t, 3> ids;
  for (int i = 0; i < 3; ++i) {
    ids[static_cast<size_t>(i)] = *pool.allocate();
    pool.publish(ids[static_cast<size_t>(i)], key_of(i));
  }
  for (const int i : {1, 0, 2}) pool.release(ids[static_cast<size_t>(i)]);
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.num_available(), 3);
  // Page 0 is used again and released: it is now the youngest.
  pool.share(ids[0]);
  pool.release(ids[0]);
  for (const int i : {1, 2, 0}) {
    EXPECT_TRUE(pool.find(key_of(i)).has_value());
    EXPECT_EQ(pool.allocate(), ids[static_cast<size_t>(i)]);
    EXPECT_FALSE(pool.find(key_of(i)).has_value());
    pool.check_invariants();
  }
}

TEST(PagePool, TheFirstPageWithAContentKeepsTheName) {
  PagePool pool(2);
  const int32_t a = *pool.allocate(), b = *pool.allocate();
  pool.publish(a, key_of(1));
  pool.publish(b, key_of(1));
  EXPECT_EQ(pool.find(key_of(1)), a);
  pool.release(b);
  EXPECT_EQ(pool.num_free(), 1) << "a nameless page is free, not evictable";
  EXPECT_THROW(pool.publish(a, key_of(2)), CheckError);
}

TEST(SequencePages, HoldsOnlyTheWindow) {
  PagePool pool(100);
  SequencePages pages(16, 128);
  for (int64_t n = 1; n <= 1000; ++n) {
    ASSERT_TRUE(pages.reserve(pool, n));
    pages.drop_out_of_window(pool, n);
    // A query at position n sees [n - 127, n].
    ASSERT_LE(pages.first_page() * 16, std::max<int64_t>(0, n - 127));
    ASSERT_LE(static_cast<int64_t>(pages.page_ids().size()),
              SequencePages::max_pages(16, 128, 1000, 1));
  }
  EXPECT_LE(pages.page_ids().size(), 9u);
  pages.release_all(pool);
  EXPECT_EQ(pool.num_free(), 100);
}

TEST(SequencePages, ReservesAllOrNothing) {
  PagePool pool(4);
  SequencePages a(16, 0), b(16, 0);
  EXPECT_TRUE(a.reserve(pool, 33));
  EXPECT_EQ(a.page_ids().size(), 3u);
  EXPECT_FALSE(b.reserve(pool, 17));
  EXPECT_TRUE(b.page_ids().empty());
  EXPECT_TRUE(b.reserve(pool, 16));
}

TEST(SequencePages, AWindowPrefixNeedsOnlyWhatItsNextQuerySees) {
  std::vector<PageKey> keys;
  for (int i = 0; i < 10; ++i) keys.push_back(key_of(i));
  PagePool pool(10);
  SequencePages writer(4, 8);
  ASSERT_TRUE(writer.reserve(pool, 40));
  writer.publish(pool, 0, keys);
  EXPECT_EQ(SequencePages(4, 8).longest_cached(pool, keys), 10);
  writer.release_all(pool);
  // The last page goes first: evicting two leaves pages 0 to 7.
  const std::vector<int32_t> taken = {*pool.allocate(), *pool.allocate()};
  EXPECT_EQ(SequencePages(4, 8).longest_cached(pool, keys), 8);
  SequencePages reader(4, 8);
  reader.adopt(pool, std::span(keys).first(8));
  // The query at position 32 sees back to 25, in page 6.
  EXPECT_EQ(reader.first_page(), 6);
  EXPECT_EQ(reader.page_ids().size(), 2u);
  // Four more evictions take pages 5 to 2, of which the reader has none.
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.allocate().has_value());
  EXPECT_EQ(SequencePages(4, 8).longest_cached(pool, keys), 8)
      << "the pages in the window are still there";
  EXPECT_EQ(SequencePages(4, 0).longest_cached(pool, keys), 2);
}

// A million operations on sequences of a small alphabet (so that beginnings recur) under eviction
// pressure, in a full and a window kind. The test remembers which tokens were really written to
// each page; whatever a sequence adopts must be its own beginning.
class CacheModel {
 public:
  CacheModel(int32_t window, uint32_t seed)
      : window_(window), pool_(kNumPages), written_(kNumPages), random_(seed) {}

  void run(int num_operations) {
    for (int i = 0; i < num_operations; ++i) {
      const uint32_t what = random_() % 8;
      if (what < 2 || sequences_.empty()) {
        begin();
      } else if (what < 6) {
        grow(sequences_[random_() % sequences_.size()]);
      } else {
        end(random_() % sequences_.size());
      }
      if (HasFailure()) return;
      if (i % 64 == 0) check();
    }
    while (!sequences_.empty()) end(0);
    check();
    EXPECT_EQ(pool_.num_available(), kNumPages);
    EXPECT_GT(num_adopted_, num_operations / 100) << "the test must see hits";
    EXPECT_GT(num_refused_, 0) << "and a full pool";
  }

 private:
  static constexpr int32_t kPageSize = 4, kNumPages = 48;
  struct Sequence {
    std::vector<int32_t> tokens;
    std::vector<PageKey> keys;
    SequencePages pages;
    int64_t num_computed = 0;
    int64_t num_published = 0;
  };

  static bool HasFailure() { return testing::Test::HasFailure(); }

  void extend_keys(Sequence& s) {
    while ((s.keys.size() + 1) * kPageSize <= s.tokens.size()) {
      const PageKey previous = s.keys.empty() ? root_page_key("") : s.keys.back();
      s.keys.push_back(next_page_key(previous, std::span<const int32_t>(s.tokens).subspan(
                                                   s.keys.size() * kPageSize, kPageSize)));
    }
  }

  void begin() {
    Sequence s{.tokens = {}, .keys = {}, .pages = SequencePages(kPageSize, window_)};
    const auto length = 1 + random_() % 60;
    for (uint32_t i = 0; i < length; ++i)
      s.tokens.push_back(static_cast<int32_t>(random_() % 20 == 0));
    extend_keys(s);
    const int64_t cached = s.pages.longest_cached(pool_, s.keys);
    const auto keys = std::span<const PageKey>(s.keys).first(static_cast<size_t>(cached));
    s.pages.adopt(pool_, keys);
    for (size_t i = 0; i < s.pages.page_ids().size(); ++i) expect_content(s, i);
    s.num_computed = cached * kPageSize;
    s.num_published = cached;
    num_adopted_ += cached;
    sequences_.push_back(std::move(s));
  }

  // The page holds the whole beginning of the sequence up to its end.
  void expect_content(const Sequence& s, size_t index) {
    const auto end =
        static_cast<size_t>(s.pages.first_page() + static_cast<int64_t>(index) + 1) * kPageSize;
    const std::vector<int32_t> expected(s.tokens.begin(),
                                        s.tokens.begin() + static_cast<long>(end));
    ASSERT_EQ(written_[static_cast<size_t>(s.pages.page_ids()[index])], expected);
  }

  void grow(Sequence& s) {
    if (random_() % 3 == 0) s.tokens.push_back(static_cast<int32_t>(random_() % 2));
    const int64_t end = std::min<int64_t>(static_cast<int64_t>(s.tokens.size()),
                                          s.num_computed + 1 + random_() % 16);
    if (!s.pages.reserve(pool_, end)) {
      ++num_refused_;
      return;
    }
    for (int64_t p = s.num_computed / kPageSize; p * kPageSize < end; ++p) {
      const auto up_to = std::min<int64_t>(end, (p + 1) * kPageSize);
      written_[static_cast<size_t>(
                   s.pages.page_ids()[static_cast<size_t>(p - s.pages.first_page())])]
          .assign(s.tokens.begin(), s.tokens.begin() + up_to);
    }
    s.num_computed = end;
    extend_keys(s);
    const int64_t num_full = end / kPageSize;
    s.pages.publish(pool_, s.num_published,
                    std::span<const PageKey>(s.keys).first(static_cast<size_t>(num_full)));
    s.num_published = num_full;
    s.pages.drop_out_of_window(pool_, end);
  }

  void end(size_t index) {
    sequences_[index].pages.release_all(pool_);
    sequences_.erase(sequences_.begin() + static_cast<long>(index));
  }

  void check() {
    pool_.check_invariants();
    std::map<int32_t, int32_t> holders;
    for (const Sequence& s : sequences_) {
      for (const int32_t id : s.pages.page_ids()) ++holders[id];
    }
    ASSERT_EQ(static_cast<int32_t>(holders.size()) + pool_.num_available(), kNumPages);
    for (const auto& [id, count] : holders) ASSERT_EQ(pool_.num_holders(id), count);
  }

  int32_t window_;
  PagePool pool_;
  std::vector<std::vector<int32_t>> written_;  // by page: the tokens from 0 to the page's end
  std::vector<Sequence> sequences_;
  std::mt19937 random_;
  int64_t num_adopted_ = 0, num_refused_ = 0;
};

TEST(PrefixCache, AMillionRandomOperationsFull) { CacheModel(0, 1).run(500000); }
TEST(PrefixCache, AMillionRandomOperationsWindow) { CacheModel(10, 2).run(500000); }

}  // namespace
}  // namespace briar
