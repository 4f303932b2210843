// What the tests of this folder share: the reference data, the two forms of the tokenizer, random
// text.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "tokenizer/tokenizer.h"

namespace briar::test {

inline std::string asset(const std::string& path) { return BRIAR_ASSETS_DIR "/" + path; }

inline std::vector<boost::json::value> read_jsonl(const std::string& path) {
  std::vector<boost::json::value> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(json::parse(line, path).value());
  }
  EXPECT_FALSE(lines.empty()) << path;
  return lines;
}

inline std::vector<int32_t> ids_of(const boost::json::value& array) {
  return boost::json::value_to<std::vector<int32_t>>(array);
}

// Reading the 28 MB of tokenizer.json takes a while: once a test program.
inline std::shared_ptr<const Tokenizer> hf_tokenizer() {
  static const auto tokenizer =
      Tokenizer::load_tokenizer_json(asset("tokenizer/tokenizer.json")).value();
  return tokenizer;
}

// Processor time, so that a busy machine changes nothing.
template <class Work>
double cpu_seconds_of(Work work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

inline std::string utf8(char32_t c) {
  const auto byte = [](char32_t bits) { return static_cast<char>(bits); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 63))};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)),
          byte(0x80 | (c & 63))};
}

inline std::string utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) out += utf8(c);
  return out;
}

// Mostly characters whose neighbours decide how the split goes, some from anywhere in Unicode.
inline std::u32string random_text(std::mt19937& random, size_t max_size) {
  static constexpr std::u32string_view kTricky =
      U"aabzAZ 0  19\t\n\r\n//.,'''sStTrReEvVmMlLdD\u017F\u212A\"(<|>éÉßǅʰªя漢字あ가"
      U"\u0301\u0300\u0903\u0085\u00A0\u2028\u3000\u200B\u200D\uFEFF½Ⅷ²٣\U0001F642\U0001F1E9\uFFFD";
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  std::u32string text;
  for (size_t i = below(max_size + 1); i > 0; --i) {
    char32_t c = kTricky[below(kTricky.size())];
    if (below(10) == 0) c = static_cast<char32_t>(below(0x3000));
    if (below(40) == 0) c = static_cast<char32_t>(below(0x110000));
    if (c >= 0xD800 && c < 0xE000) c = U'x';
    text += c;
    if (below(8) == 0) text.append(below(5), c);
  }
  return text;
}

inline std::string random_bytes(std::mt19937& random, size_t max_size) {
  const auto below = [&](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(random);
  };
  std::string bytes(below(max_size + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(below(256));
  return bytes;
}

}  // namespace briar::test
