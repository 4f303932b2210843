#include "tokenizer/unicode_classes.h"

namespace briar {
namespace {
#include "tokenizer/unicode_tables.inc"
}  // namespace

CharClass char_class(uint32_t code_point) {
  return static_cast<CharClass>(kClassBlocks[kClassBlockOf[code_point >> 7]][code_point & 127]);
}

}  // namespace briar
