#include <array>
#include <charconv>

#include "tokenizer/loaders.h"

namespace briar {
namespace {

constexpr uint8_t kNotBase64 = 0xFF;

constexpr std::array<uint8_t, 256> kBase64Values = [] {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<uint8_t, 256> values{};
  values.fill(kNotBase64);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

// Decodes into `out`; false if `text` is not padded base64 of at least one byte.
bool decode_base64(std::string_view text, std::string& out) {
  out.clear();
  if (text.empty() || text.size() % 4 != 0) return false;
  const size_t num_padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  const std::string_view digits = text.substr(0, text.size() - num_padding);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : digits) {
    const uint8_t value = kBase64Values[static_cast<uint8_t>(c)];
    if (value == kNotBase64) return false;
    bits = bits << 6 | value;
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      out += static_cast<char>(bits >> num_bits & 0xFF);
    }
  }
  return true;
}

}  // namespace

Result<Vocabulary> parse_tiktoken(std::string_view text, std::string_view source) {
  TokenBytes tokens;
  tokens.reserve(text.size() / 16, text.size() / 2);
  std::string bytes;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const int32_t rank = tokens.size();
    const size_t space = line.find(' ');
    int32_t written_rank = -1;
    const char* const line_end = line.data() + line.size();
    if (space == line.npos || !decode_base64(line.substr(0, space), bytes)) {
      return make_error("{}:{}: not a line of \"<base64 bytes> <rank>\"", source, rank + 1);
    }
    const auto parsed = std::from_chars(line.data() + space + 1, line_end, written_rank);
    if (parsed.ec != std::errc() || parsed.ptr != line_end || written_rank != rank) {
      return make_error("{}:{}: the rank must be {}", source, rank + 1, rank);
    }
    tokens.add(bytes);
    begin = end + 1;
  }
  return Vocabulary::build(std::move(tokens), source);
}

}  // namespace briar
