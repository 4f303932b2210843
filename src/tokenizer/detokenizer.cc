#include "tokenizer/detokenizer.h"

#include "tokenizer/utf8.h"

namespace briar {

std::string Utf8Stream::push(std::string_view bytes) {
  std::string out;
  if (pending_.empty()) {
    pending_ = bytes.substr(append_complete_utf8(bytes, out));
    return out;
  }
  pending_ += bytes;
  pending_.erase(0, append_complete_utf8(pending_, out));
  return out;
}

std::string Utf8Stream::finish() {
  std::string out = lossy_utf8(pending_);
  pending_.clear();
  return out;
}

}  // namespace briar
