#include "tokenizer/utf8.h"

namespace briar {
namespace {

constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

// What a lead byte asks for: the number of bytes (0: not a lead byte) and the range of the second
// one, which excludes overlong forms, surrogates and code points above U+10FFFF (table 3-7).
struct Lead {
  uint8_t length;
  uint8_t second_min;
  uint8_t second_max;
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Char decode_utf8_char(const char* begin, const char* end) {
  const auto byte = [&](int i) { return static_cast<uint8_t>(begin[i]); };
  const Lead lead = lead_of(byte(0));
  if (lead.length == 1) return {byte(0), 1, Utf8Char::Form::kValid};
  if (lead.length == 0) return {};
  uint32_t code_point = byte(0) & (0x7Fu >> lead.length);
  for (uint8_t i = 1; i < lead.length; ++i) {
    if (begin + i == end) return {kReplacementCharacter, i, Utf8Char::Form::kIncomplete};
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < min || byte(i) > max) {
      return {kReplacementCharacter, i, Utf8Char::Form::kIllFormed};
    }
    code_point = code_point << 6 | (byte(i) & 0x3Fu);
  }
  return {code_point, lead.length, Utf8Char::Form::kValid};
}

size_t append_complete_utf8(std::string_view bytes, std::string& out) {
  const char* const end = bytes.data() + bytes.size();
  const char* copied = bytes.data();  // everything before it is in `out`
  const char* p = bytes.data();
  while (p < end) {
    const Utf8Char c = decode_utf8_char(p, end);
    if (c.form != Utf8Char::Form::kValid) {
      out.append(copied, p);
      if (c.form == Utf8Char::Form::kIncomplete) return static_cast<size_t>(p - bytes.data());
      out += kReplacementUtf8;
      copied = p + c.length;
    }
    p += c.length;
  }
  out.append(copied, end);
  return bytes.size();
}

std::string lossy_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  if (append_complete_utf8(bytes, out) < bytes.size()) out += kReplacementUtf8;
  return out;
}

}  // namespace briar
