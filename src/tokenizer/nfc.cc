#include "tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

void append_decomposed(uint32_t code_point, std::vector<utf8proc_int32_t>& out) {
  utf8proc_int32_t parts[16];  // the longest canonical decomposition has 4
  int last_boundary_class = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts, 16,
                                             UTF8PROC_DECOMPOSE, &last_boundary_class);
  CHECK(count >= 0 && count <= 16, "U+{:04X} decomposes into {}", code_point, count);
  out.insert(out.end(), parts, parts + count);
}

// utf8proc's own ordering is quadratic in a run of marks, which a hostile text makes long.
void order_marks(std::vector<utf8proc_int32_t>& text) {
  for (auto begin = text.begin(); begin != text.end();) {
    const auto is_mark = [](utf8proc_int32_t c) { return combining_class(c) != 0; };
    const auto first = std::find_if(begin, text.end(), is_mark);
    const auto last = std::find_if_not(first, text.end(), is_mark);
    std::stable_sort(first, last, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    begin = last;
  }
}

void append_nfc(std::string_view valid_text, std::string& out) {
  std::vector<utf8proc_int32_t> text;
  const char* const end = valid_text.data() + valid_text.size();
  for (const char* p = valid_text.data(); p < end;) {
    const Utf8Char c = decode_utf8_char(p, end);
    append_decomposed(c.code_point, text);
    p += c.length;
  }
  order_marks(text);
  const auto size =
      utf8proc_normalize_utf32(text.data(), static_cast<utf8proc_ssize_t>(text.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  CHECK(size >= 0, "utf8proc refuses valid text: {}", utf8proc_errmsg(size));
  for (utf8proc_ssize_t i = 0; i < size; ++i) {
    utf8proc_uint8_t bytes[4];
    const auto length = utf8proc_encode_char(text[static_cast<size_t>(i)], bytes);
    out.append(bytes, bytes + length);
  }
}

}  // namespace

bool is_surely_nfc(std::string_view text) {
  // The lead byte of U+0300 is 0xCC.
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<uint8_t>(c) >= 0xCC; });
}

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const char* const end = text.data() + text.size();
  const char* valid_begin = text.data();
  for (const char* p = text.data(); p < end;) {
    const Utf8Char c = decode_utf8_char(p, end);
    if (c.form != Utf8Char::Form::kValid) {
      append_nfc({valid_begin, p}, out);
      out.append(p, c.length);
      valid_begin = p + c.length;
    }
    p += c.length;
  }
  append_nfc({valid_begin, end}, out);
  return out;
}

}  // namespace briar
