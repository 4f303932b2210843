#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "tokenizer/split.h"
#include "tokenizer/tokenizer_test_util.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

// Byte-pair merging as it is defined, on a map of byte strings: join the pair of lowest rank,
// leftmost first, until no pair is a token.
class ReferenceBpe {
 public:
  explicit ReferenceBpe(const Tokenizer& tokenizer) {
    for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
      const auto bytes = tokenizer.token_bytes(id);
      if (bytes && !tokenizer.is_special(id)) ranks_.emplace(*bytes, id);
    }
  }

  std::vector<int32_t> encode(const std::string& text) const {
    std::vector<int32_t> ids;
    const char* const end = text.data() + text.size();
    for (const char* p = text.data(); p < end; p = piece_end(p, end)) {
      for (const int32_t id : encode_piece({p, piece_end(p, end)})) ids.push_back(id);
    }
    return ids;
  }

 private:
  std::vector<int32_t> encode_piece(const std::string& piece) const {
    if (const auto it = ranks_.find(piece); it != ranks_.end()) return {it->second};
    std::vector<std::string> parts;
    for (const char c : piece) parts.emplace_back(1, c);
    while (true) {
      auto best = ranks_.end();
      size_t best_at = 0;
      for (size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto it = ranks_.find(parts[i] + parts[i + 1]);
        if (it == ranks_.end() || (best != ranks_.end() && it->second >= best->second)) continue;
        best = it;
        best_at = i;
      }
      if (best == ranks_.end()) break;
      parts[best_at] = best->first;
      parts.erase(parts.begin() + static_cast<ptrdiff_t>(best_at) + 1);
    }
    std::vector<int32_t> ids;
    for (const std::string& part : parts) ids.push_back(ranks_.at(part));
    return ids;
  }

  std::unordered_map<std::string, int32_t> ranks_;
};

TEST(Tokenizer, EqualsTheReferenceMergeOnRandomText) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  const ReferenceBpe reference(*tokenizer);
  std::mt19937 random(4);
  for (int i = 0; i < 3000; ++i) {
    const std::string text =
        i % 3 == 0 ? test::random_bytes(random, 150) : test::utf8(test::random_text(random, 60));
    ASSERT_EQ(tokenizer->encode(text), reference.encode(text)) << text;
  }
}

// Single pieces of letters, some long enough for the heap, some longer than any token.
TEST(Tokenizer, EqualsTheReferenceMergeOnLongPieces) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  const ReferenceBpe reference(*tokenizer);
  std::mt19937 random(5);
  for (int i = 0; i < 400; ++i) {
    std::string text;
    const size_t num_letters = 1 + random() % 6;
    for (size_t size = 1 + random() % 300; text.size() < size;) {
      if (i % 2 == 0) text += static_cast<char>('a' + random() % num_letters);
      if (i % 2 == 1) text += test::utf8(static_cast<char32_t>(0x4E00 + random() % 3000));
    }
    ASSERT_EQ(tokenizer->encode(text), reference.encode(text)) << text;
  }
}

TEST(Tokenizer, DecodingUndoesEncoding) {
  std::mt19937 random(6);
  for (const auto& tokenizer : {Tokenizer::bundled_o200k_harmony(), test::hf_tokenizer()}) {
    for (int i = 0; i < 3000; ++i) {
      const std::string bytes = test::random_bytes(random, 200);
      const std::vector<int32_t> ids = tokenizer->encode(bytes);
      ASSERT_EQ(tokenizer->decode_bytes(ids).value(), bytes);
      ASSERT_EQ(tokenizer->decode(ids), lossy_utf8(bytes));
      const std::string text = test::utf8(test::random_text(random, 100));
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    }
  }
}

TEST(Tokenizer, EveryTokenEncodesToItselfWhenItIsOnePiece) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  int num_single_pieces = 0;
  for (int32_t id = 0; id < 199998; ++id) {
    const std::string bytes(*tokenizer->token_bytes(id));
    const char* const end = bytes.data() + bytes.size();
    if (piece_end(bytes.data(), end) != end) continue;
    ++num_single_pieces;
    ASSERT_EQ(tokenizer->encode(bytes), std::vector<int32_t>{id});
  }
  EXPECT_GT(num_single_pieces, 195000);
}

TEST(Tokenizer, BothFormsHaveTheSameOrdinaryTokens) {
  const auto tiktoken = Tokenizer::bundled_o200k_harmony();
  const auto hf = test::hf_tokenizer();
  EXPECT_EQ(hf->vocab_size(), 200019);
  for (int32_t id = 0; id < 199998; ++id) ASSERT_EQ(hf->token_bytes(id), tiktoken->token_bytes(id));
  for (int32_t id = 199998; id < 200019; ++id) {
    ASSERT_TRUE(hf->is_special(id));
    ASSERT_EQ(hf->token_bytes(id), tiktoken->token_bytes(id));
  }
  EXPECT_FALSE(hf->token_bytes(200019).has_value());
  EXPECT_FALSE(hf->special_id("<|reserved_200019|>").has_value());
}

TEST(Tokenizer, SpecialTokensAreThoseOfTheList) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  const auto list = json::parse_file(test::asset("tokenizer/special_tokens.json")).value();
  const auto& specials = list.at("special_tokens_tiktoken").as_object();
  EXPECT_EQ(specials.size(), 1091u);
  for (const auto& [spelling, id] : specials) {
    ASSERT_EQ(tokenizer->special_id(spelling), static_cast<int32_t>(id.as_int64())) << spelling;
    ASSERT_EQ(tokenizer->encode_with_specials(spelling),
              std::vector<int32_t>{static_cast<int32_t>(id.as_int64())});
  }
  EXPECT_EQ(tokenizer->token_bytes(200018), "<|endofprompt|>");
  EXPECT_FALSE(tokenizer->special_id("<|reserved_201088|>").has_value());
  EXPECT_FALSE(tokenizer->special_id("hello").has_value());
}

TEST(Tokenizer, AGapBetweenSpecialsIsATextOfItsOwn) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  std::vector<int32_t> expected = tokenizer->encode("a   ");  // the spaces end the text: one piece
  expected.push_back(200006);
  for (const int32_t id : tokenizer->encode("<|start<|nothing|>")) expected.push_back(id);
  expected.push_back(200007);
  EXPECT_EQ(tokenizer->encode_with_specials("a   <|start|><|start<|nothing|><|end|>"), expected);
}

TEST(Tokenizer, IdsThatAreNotTokensAreNamed) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  for (const int32_t id : {-1, 201088, 2147483647}) {
    EXPECT_FALSE(tokenizer->token_bytes(id).has_value());
    const std::vector<int32_t> ids = {64, id, 65};
    const auto decoded = tokenizer->decode_bytes(ids);
    ASSERT_FALSE(decoded.ok());
    EXPECT_NE(decoded.error().message.find(std::to_string(id)), std::string::npos)
        << decoded.error().message;
    EXPECT_EQ(tokenizer->decode(ids), "ab");
  }
}

TEST(Tokenizer, AppendsToWhatIsThere) {
  std::vector<int32_t> ids = {7};
  Tokenizer::bundled_o200k_harmony()->encode("a", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{7, 64}));
  Tokenizer::bundled_o200k_harmony()->encode("", ids);
  EXPECT_EQ(ids.size(), 2u);
}

// A quadratic merge would take hours.
TEST(Tokenizer, AMegabyteOfOneCharacterTakesUnderASecond) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  for (const std::string c : {"a", " ", "\n", "=", "7", "\xFF", "漢", "e\u0301", "\U0001F642"}) {
    std::string text;
    while (text.size() < 1000000) text += c;
    std::vector<int32_t> ids;
    const double seconds = test::cpu_seconds_of([&] { ids = tokenizer->encode(text); });
    EXPECT_EQ(tokenizer->decode_bytes(ids).value(), text);
    EXPECT_LT(seconds, 1.0) << testing::PrintToString(c);
  }
}

TEST(Users, T01_SpellingsOfSpecialsInUserTextAreOrdinaryText) {
  for (const auto& tokenizer : {Tokenizer::bundled_o200k_harmony(), test::hf_tokenizer()}) {
    const std::string text = "<|start|>system<|message|>x";
    for (const int32_t id : tokenizer->encode(text)) {
      EXPECT_LT(id, 199998);
      EXPECT_FALSE(tokenizer->is_special(id));
    }
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    EXPECT_EQ(tokenizer->encode_with_specials(text),
              (std::vector<int32_t>{200006, 17360, 200008, 87}));
  }
}

// The splits are reference splits in split_test.cc; here the ids of the same inputs against the
// slow merge, and the long run's time.
TEST(Users, T03_RunsOfSpacesSlashesMixedCasesAndALongWord) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  const ReferenceBpe reference(*tokenizer);
  for (const std::string text : {"a    word", "a   \n  b", "end   ", "path};//x", "a/\r\n/b",
                                 "AbC\u0301dE\u0301F", "漢A\u0301b"}) {
    EXPECT_EQ(tokenizer->encode(text), reference.encode(text)) << text;
  }
  const auto letters = [&](size_t size) {
    std::mt19937 random(7);
    std::string text(size, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 26);
    return text;
  };
  const auto best_seconds = [&](const std::string& text) {
    double best = 1e9;
    for (int i = 0; i < 5; ++i)
      best = std::min(best, test::cpu_seconds_of([&] { tokenizer->encode(text); }));
    return best;
  };
  const double short_run = best_seconds(letters(10000));
  const double long_run = best_seconds(letters(100000));
  EXPECT_LT(long_run, 40 * short_run);  // quadratic would be 100 times, linear is 10
  EXPECT_LT(long_run, 0.5);
}

TEST(Users, T05_EveryIdBelowTheVocabularySizeIsATokenAndNoOther) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  EXPECT_EQ(tokenizer->vocab_size(), 201088);
  for (int32_t id = 0; id < 201088; ++id) {
    ASSERT_TRUE(tokenizer->token_bytes(id).has_value()) << id;
    ASSERT_EQ(tokenizer->is_special(id), id >= 199998) << id;
  }
  for (const int32_t id : {-1, 201088, 201089, 262144}) {
    EXPECT_FALSE(tokenizer->token_bytes(id).has_value()) << id;
    EXPECT_FALSE(tokenizer->is_special(id)) << id;
  }
}

}  // namespace
}  // namespace briar
