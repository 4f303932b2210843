// The character classes that the o200k split distinguishes (Unicode 16.0).
#pragma once

#include <cstdint>

namespace briar {

// The order is known to scripts/generate_unicode_tables.py.
enum class CharClass : uint8_t {
  kOther,      // punctuation, symbols, controls, unassigned
  kUpper,      // Lu, Lt
  kLower,      // Ll
  kBothCases,  // Lm, Lo: letters that continue both an upper and a lower run
  kMark,       // M: not a letter, but continues both runs
  kNumber,     // N
  kSpace,      // White_Space without CR and LF
  kNewline,    // CR, LF
};

// Class of a code point up to U+10FFFF.
CharClass char_class(uint32_t code_point);

}  // namespace briar
