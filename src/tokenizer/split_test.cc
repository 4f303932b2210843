#include "tokenizer/split.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>

#include "tokenizer/tokenizer_test_util.h"
#include "tokenizer/unicode_classes.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

using Pieces = std::vector<std::string>;

Pieces split(std::string_view text) {
  Pieces pieces;
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const char* const next = piece_end(p, end);
    if (next <= p || next > end) {
      ADD_FAILURE() << "a piece of " << next - p << " bytes in " << testing::PrintToString(text);
      break;
    }
    pieces.emplace_back(p, next);
    p = next;
  }
  return pieces;
}

// A backtracking matcher of the regex as it is written, one character class after another, over
// code points, with the classes as the reference data spells them: slow and without any of
// split.cc's reasoning.
class ReferenceSplit {
 public:
  ReferenceSplit() {
    const auto root = json::parse_file(test::asset("tokenizer/unicode16_classes.json")).value();
    for (const auto& [name, ranges] : root.at("ranges_inclusive").as_object()) {
      for (const auto& range : ranges.as_array()) {
        classes_[name][static_cast<char32_t>(range.at(1).as_int64())] =
            static_cast<char32_t>(range.at(0).as_int64());
      }
    }
    const Atom upper = {in({"Lu", "Lt", "Lm", "Lo", "M"}), 0, kMany};
    const Atom lower = {in({"Ll", "Lm", "Lo", "M"}), 0, kMany};
    const Atom prefix = {not_in({"L", "N"}, U"\r\n"), 0, 1};
    const auto any_of = [](std::u32string_view set) {
      return [set](char32_t c) { return set.find(c) != set.npos; };
    };
    alternatives_ = {
        {.atoms = {prefix, upper, {lower.matches, 1, kMany}}, .contraction = true},
        {.atoms = {prefix, {upper.matches, 1, kMany}, lower}, .contraction = true},
        {.atoms = {{in({"N"}), 1, 3}}},
        {.atoms = {{any_of(U" "), 0, 1},
                   {not_in({"White_Space", "L", "N"}, U""), 1, kMany},
                   {any_of(U"\r\n/"), 0, kMany}}},
        {.atoms = {{in({"White_Space"}), 0, kMany}, {any_of(U"\r\n"), 1, kMany}}},
        {.atoms = {{in({"White_Space"}), 1, kMany}}, .before_space_or_end = true},
        {.atoms = {{in({"White_Space"}), 1, kMany}}},
    };
  }

  Pieces split(std::u32string_view text) const {
    Pieces pieces;
    for (size_t begin = 0; begin < text.size();) {
      std::optional<size_t> end;
      for (const Alternative& a : alternatives_) {
        if ((end = match(a, 0, text, begin))) break;
      }
      EXPECT_TRUE(end && *end > begin) << "no alternative matches";
      pieces.push_back(test::utf8(text.substr(begin, *end - begin)));
      begin = *end;
    }
    return pieces;
  }

  bool has(const std::string& name, char32_t c) const {
    const auto& ends = classes_.at(name);
    const auto it = ends.lower_bound(c);
    return it != ends.end() && it->second <= c;
  }

 private:
  static constexpr size_t kMany = static_cast<size_t>(-1);
  using Set = std::function<bool(char32_t)>;
  struct Atom {
    Set matches;
    size_t min;
    size_t max;
  };
  struct Alternative {
    std::vector<Atom> atoms;
    bool contraction = false;          // ends in (?i:'s|'t|'re|'ve|'m|'ll|'d)?
    bool before_space_or_end = false;  // ends in (?!\S)
  };

  Set in(std::vector<std::string> names) const {
    return [this, names](char32_t c) {
      return std::any_of(names.begin(), names.end(), [&](const auto& n) { return has(n, c); });
    };
  }
  Set not_in(std::vector<std::string> names, std::u32string_view also) const {
    return [set = in(names), also](char32_t c) { return !set(c) && also.find(c) == also.npos; };
  }

  std::optional<size_t> match(const Alternative& a, size_t atom, std::u32string_view text,
                              size_t begin) const {
    if (atom == a.atoms.size()) return match_tail(a, text, begin);
    const auto& [matches, min, max] = a.atoms[atom];
    size_t count = 0;
    while (count < max && begin + count < text.size() && matches(text[begin + count])) ++count;
    for (; count >= min; --count) {
      if (const auto end = match(a, atom + 1, text, begin + count)) return end;
      if (count == 0) break;
    }
    return std::nullopt;
  }

  std::optional<size_t> match_tail(const Alternative& a, std::u32string_view text,
                                   size_t end) const {
    if (a.before_space_or_end && end < text.size() && !has("White_Space", text[end])) {
      return std::nullopt;
    }
    if (!a.contraction) return end;
    for (const std::u32string_view suffix : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"}) {
      std::u32string folded(text.substr(end, suffix.size()));
      for (char32_t& c : folded) c = c == U'\u017F' ? U's' : c < 0x80 ? std::tolower(int(c)) : c;
      if (folded == suffix) return end + suffix.size();
    }
    return end;
  }

  std::map<std::string, std::map<char32_t, char32_t>> classes_;  // last -> first of each range
  std::vector<Alternative> alternatives_;
};

const ReferenceSplit& reference() {
  static const ReferenceSplit reference;
  return reference;
}

TEST(UnicodeClasses, AreThoseOfTheReferenceForEveryCodePoint) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    CharClass expected = CharClass::kOther;
    if (reference().has("Lu", c) || reference().has("Lt", c)) expected = CharClass::kUpper;
    if (reference().has("Ll", c)) expected = CharClass::kLower;
    if (reference().has("Lm", c) || reference().has("Lo", c)) expected = CharClass::kBothCases;
    if (reference().has("M", c)) expected = CharClass::kMark;
    if (reference().has("N", c)) expected = CharClass::kNumber;
    if (reference().has("White_Space", c)) expected = CharClass::kSpace;
    if (c == '\r' || c == '\n') expected = CharClass::kNewline;
    ASSERT_EQ(char_class(c), expected) << std::hex << static_cast<uint32_t>(c);
  }
}

TEST(Split, UpperLowerAndCaselessLetters) {
  EXPECT_EQ(split("漢A"), (Pieces{"漢", "A"}));
  EXPECT_EQ(split("ABCdef"), (Pieces{"ABCdef"}));
  EXPECT_EQ(split("AbC"), (Pieces{"Ab", "C"}));
  EXPECT_EQ(split("漢字AB漢字AB"), (Pieces{"漢字AB漢字", "AB"}));
  EXPECT_EQ(split("camelCaseHTTPServer"), (Pieces{"camel", "Case", "HTTPServer"}));
}

TEST(Split, MarksArePrefixesAndLetters) {
  EXPECT_EQ(split("e\u0301\u0301A"), (Pieces{"e\u0301\u0301", "A"}));
  EXPECT_EQ(split("\u0301ABC"), (Pieces{"\u0301", "ABC"}));
  EXPECT_EQ(split("\u0301's"), (Pieces{"\u0301's"}));
  EXPECT_EQ(split(" \u0301."), (Pieces{" \u0301", "."}));
  EXPECT_EQ(split("..\u0301a"), (Pieces{"..\u0301", "a"}));
}

TEST(Split, Contractions) {
  EXPECT_EQ(split("it's IT'S he'LL we'Re x'\u017F"),
            (Pieces{"it's", " IT'S", " he'LL", " we'Re", " x'\u017F"}));
  EXPECT_EQ(split("it'x don'tx"), (Pieces{"it", "'x", " don't", "x"}));
  EXPECT_EQ(split("a'l"), (Pieces{"a", "'l"}));
  EXPECT_EQ(split("1's"), (Pieces{"1", "'s"}));
}

TEST(Split, WhiteSpace) {
  EXPECT_EQ(split("a   b"), (Pieces{"a", "  ", " b"}));
  EXPECT_EQ(split("a  \n  \r\n  b"), (Pieces{"a", "  \n  \r\n", " ", " b"}));
  EXPECT_EQ(split("a   "), (Pieces{"a", "   "}));
  EXPECT_EQ(split("a \t1"), (Pieces{"a", " ", "\t", "1"}));
  EXPECT_EQ(split("\ta\u00A0b\u3000."), (Pieces{"\ta", "\u00A0b", "\u3000", "."}));
  EXPECT_EQ(split(" \u0085x"), (Pieces{" ", "\u0085x"}));        // U+0085 is White_Space
  EXPECT_EQ(split("a \uFEFFx"), (Pieces{"a", " \uFEFF", "x"}));  // U+FEFF is not
}

TEST(Split, NumbersAndSymbols) {
  EXPECT_EQ(split("1234567"), (Pieces{"123", "456", "7"}));
  EXPECT_EQ(split("x½Ⅷ²٣"), (Pieces{"x", "½Ⅷ²", "٣"}));
  EXPECT_EQ(split("}\n\n/\r\n/ x"), (Pieces{"}\n\n/\r\n/", " x"}));
  EXPECT_EQ(split("/\r\n/"), (Pieces{"/\r\n/"}));
  EXPECT_EQ(split(" (a ((a"), (Pieces{" (", "a", " ((", "a"}));
  EXPECT_EQ(split("(a"), (Pieces{"(a"}));
}

TEST(Split, AnIllFormedPartIsOneSymbol) {
  EXPECT_EQ(split("\xE2\x82xy"), (Pieces{"\xE2\x82xy"}));  // a cut-off character is a prefix
  EXPECT_EQ(split("\x82\x82xy"), (Pieces{"\x82\x82", "xy"}));
  EXPECT_EQ(split("a\xF0\x9F\x99"), (Pieces{"a", "\xF0\x9F\x99"}));
  EXPECT_EQ(split(" \xFF\n"), (Pieces{" \xFF\n"}));
}

TEST(Split, EqualsABacktrackingMatcherOnRandomText) {
  std::mt19937 random(1);
  for (int i = 0; i < 30000; ++i) {
    const std::u32string text = test::random_text(random, 24);
    ASSERT_EQ(split(test::utf8(text)), reference().split(text)) << test::utf8(text);
  }
}

TEST(Split, EqualsTheSplitOfTheLossyDecodingOnRandomBytes) {
  std::mt19937 random(2);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = test::random_bytes(random, 24);
    Pieces lossy;
    std::string joined;
    for (const std::string& piece : split(bytes)) {
      lossy.push_back(lossy_utf8(piece));
      joined += piece;
    }
    ASSERT_EQ(joined, bytes);
    ASSERT_EQ(lossy, split(lossy_utf8(bytes))) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace briar
