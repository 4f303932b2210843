// Bytes through the bundled tokenizer's encoder, and bytes as ids through its decoder.
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/require.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

const Tokenizer& tokenizer() {
  static const auto bundled = Tokenizer::bundled_o200k_harmony();
  return *bundled;
}

// One special token has two names, of which decoding knows one.
std::string with_first_names(std::string_view text) {
  constexpr std::string_view kSecond = "<|reserved_200018|>", kFirst = "<|endofprompt|>";
  std::string out(text);
  for (size_t at = 0; (at = out.find(kSecond, at)) != std::string::npos; at += kFirst.size()) {
    out.replace(at, kSecond.size(), kFirst);
  }
  return out;
}

void encode(std::string_view text) {
  const std::vector<int32_t> ids = tokenizer().encode(text);
  for (const int32_t id : ids) require(!tokenizer().is_special(id), "text has no special tokens");
  const auto bytes = tokenizer().decode_bytes(ids);
  require(bytes.ok() && *bytes == text, "decoding gives the text back");
  require(tokenizer().decode(ids) == lossy_utf8(text), "the lossy text is that of the bytes");
  const auto with_specials = tokenizer().decode_bytes(tokenizer().encode_with_specials(text));
  require(with_specials.ok() && *with_specials == with_first_names(text),
          "with special tokens too");
}

void decode(std::string_view bytes) {
  std::vector<int32_t> ids(bytes.size() / sizeof(int32_t));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(int32_t));
  const std::string text = tokenizer().decode(ids);
  require(lossy_utf8(text) == text, "decoded text is valid UTF-8");
  // Most random ids are none of ours; their remainders are.
  for (int32_t& id : ids) id = static_cast<int32_t>(static_cast<uint32_t>(id) % 201100u);
  const std::string known = tokenizer().decode(ids);
  require(lossy_utf8(known) == known, "decoded text is valid UTF-8");
  if (const auto exact = tokenizer().decode_bytes(ids)) {
    require(lossy_utf8(*exact) == known, "both decodings agree");
  }
}

}  // namespace
}  // namespace briar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 == 0) {
    briar::decode(rest);
  } else {
    briar::encode(rest);
  }
  return 0;
}
