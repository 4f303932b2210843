#include "tokenizer/detokenizer.h"

#include <gtest/gtest.h>

#include "tokenizer/tokenizer_test_util.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

TEST(LossyUtf8, ReplacesMaximalIllFormedParts) {
  EXPECT_EQ(lossy_utf8(""), "");
  EXPECT_EQ(lossy_utf8("aé漢🙂"), "aé漢🙂");
  // The examples of the Unicode standard, tables 3-8 to 3-11.
  EXPECT_EQ(lossy_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy_utf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDA\uFFFD\uFFFDB");
  EXPECT_EQ(lossy_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFDA");
  EXPECT_EQ(lossy_utf8("x\xF0\x9F\x99"), "x\uFFFD");
}

TEST(LossyUtf8, KeepsEveryCodePoint) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    const std::string text = test::utf8(c);
    ASSERT_EQ(lossy_utf8(text), text);
    const Utf8Char decoded = decode_utf8_char(text.data(), text.data() + text.size());
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, text.size());
  }
}

TEST(Utf8Stream, GivesACharacterWithItsLastByteAndNoLater) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xF0"), "a");
  EXPECT_EQ(stream.push("\x9F"), "");
  EXPECT_EQ(stream.push("\x99"), "");
  EXPECT_EQ(stream.push("\x82z"), "🙂z");
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.push("x"), "\uFFFDx");  // now it cannot become a character
  EXPECT_EQ(stream.push("\xE2"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push("b"), "b");
}

// Random bytes, and text cut at random places: any cutting gives the lossy decoding of the whole,
// and every delta is valid on its own.
TEST(Utf8Stream, AnyCuttingGivesTheLossyDecoding) {
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes =
        i % 2 == 0 ? test::random_bytes(random, 30) : test::utf8(test::random_text(random, 10));
    if (i % 4 == 1 && !bytes.empty()) bytes.erase(random() % bytes.size(), 1);
    Utf8Stream stream;
    std::string joined;
    for (size_t begin = 0; begin < bytes.size();) {
      const size_t size = 1 + random() % 4;
      const std::string delta = stream.push(std::string_view(bytes).substr(begin, size));
      ASSERT_EQ(lossy_utf8(delta), delta);
      joined += delta;
      begin += size;
    }
    ASSERT_EQ(joined + stream.finish(), lossy_utf8(bytes)) << testing::PrintToString(bytes);
  }
}

size_t count_replacements(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find("\uFFFD", at)) != text.npos; ++at) ++count;
  return count;
}

TEST(Users, T07_StreamsOfEmojiFlagsAndCjkEqualTheWholeAndACutCostsOneReplacement) {
  const auto tokenizer = Tokenizer::bundled_o200k_harmony();
  const std::string text =
      "👨‍👩‍👧‍👦 🇩🇪🇯🇵🏴󠁧󠁢󠁳󠁣󠁴󠁿 漢字かな交じり文 한국어 "
      "𠮷野家 "
      "👩🏽‍🚀!";
  const std::vector<int32_t> ids = tokenizer->encode(text);
  size_t num_cuts_inside_characters = 0;
  for (size_t max_tokens = 0; max_tokens <= ids.size(); ++max_tokens) {
    const std::vector<int32_t> reply(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(max_tokens));
    Utf8Stream stream;
    std::string streamed;
    for (const int32_t id : reply) {
      const std::string delta = stream.push(*tokenizer->token_bytes(id));
      ASSERT_EQ(count_replacements(delta), 0u) << delta;
      streamed += delta;
    }
    const std::string rest = stream.finish();
    ASSERT_EQ(streamed + rest, tokenizer->decode(reply));
    ASSERT_TRUE(rest.empty() || rest == "\uFFFD") << rest;
    num_cuts_inside_characters += !rest.empty();
    ASSERT_EQ(text.compare(0, streamed.size(), streamed), 0);
  }
  EXPECT_GT(num_cuts_inside_characters, 5u);
}

}  // namespace
}  // namespace briar
