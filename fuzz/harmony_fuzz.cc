// Token ids through Harmony's streaming parser. A byte is an id: half of the values are the ids
// that give the format its structure or the words of its headers, the rest is text and ids out of
// place.
#include <string>
#include <vector>

#include "formats/harmony.h"
#include "fuzz/require.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

struct World {
  std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::bundled_o200k_harmony();
  std::shared_ptr<const Format> format = *make_harmony(tokenizer, "");
  std::vector<int32_t> ids;  // of each byte

  World() {
    for (int32_t id = 199998; id < 200024; ++id) ids.push_back(id);
    for (const char* words :
         {"assistant", "analysis", "commentary", "final", " to=functions.f", "json",
          " to=browser.search", "user", "system", "tool", "{\"a\": 1}", " ", "\n", "<|end|>",
          "functions", "f", "\xf0\x9f\x98\x80", "\xc3\xa9"}) {
      for (const int32_t id : tokenizer->encode(words)) ids.push_back(id);
    }
    // Single bytes: characters that end in another token.
    for (int32_t id = 0; ids.size() < 240; ++id) ids.push_back(id);
    for (const int32_t id : {-1, 201087, 201088, 300000, INT32_MAX, INT32_MIN}) ids.push_back(id);
  }
};

const World& world() {
  static const World instance;
  return instance;
}

void check_delta(const Delta& d) {
  require(lossy_utf8(d.text) == d.text, "a delta is whole characters");
  require((d.kind == Delta::Kind::kToolCall) == (d.tool_call_idx >= 0), "calls are counted");
}

// What was streamed of each message must be what the message says in the end.
void parse(std::span<const uint8_t> bytes, ParserOptions options) {
  const auto parser = world().format->make_parser(std::move(options));
  std::vector<Delta> deltas;
  for (const uint8_t byte : bytes) parser->push(world().ids[byte % world().ids.size()], deltas);
  parser->finish(deltas);
  int last_message = -1;
  for (const Delta& d : deltas) {
    check_delta(d);
    require(d.message_idx >= last_message, "messages come one after another");
    last_message = d.message_idx;
  }
  require(parser->warnings().total() >= 0, "warnings are counted");
}

void transcribe(std::span<const uint8_t> bytes) {
  std::vector<int64_t> ids;
  for (const uint8_t byte : bytes) ids.push_back(world().ids[byte % world().ids.size()]);
  for (const bool strict : {false, true}) {
    world().format->parse(
        ids, {.role = Role::kAssistant, .strict_library = strict, .continue_on_error = strict});
  }
}

}  // namespace
}  // namespace briar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  briar::ParserOptions options{.role = briar::Role::kAssistant};
  if (data[0] & 1) options.role = std::nullopt;
  if (data[0] & 2) options.tool_names = {"f", "g"};
  const std::span<const uint8_t> rest(data + 1, size - 1);
  briar::parse(rest, options);
  if (data[0] & 4) briar::transcribe(rest);
  return 0;
}
