// Random damage to a valid file: the reader must answer with tensors or an error. Meant to run
// under the address sanitizer (preset asan); the test touches every byte that the reader hands out.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <set>

#include "weights/hf_config.h"
#include "weights/rope_config.h"
#include "weights/safetensors.h"
#include "weights/test_util.h"

namespace briar {
namespace {

std::string valid_file() {
  return SafetensorsBuilder()
      .add("model.embed_tokens.weight", "BF16", "[4,3]", std::vector<uint16_t>(12, 0x3f80))
      .add("scalar", "F32", "[]", std::vector<float>{1.f})
      .add("empty", "I64", "[0,7]", std::vector<int64_t>{})
      .add("model.layers.0.mlp.experts.blocks", "U8", "[2,1,16]", std::vector<uint8_t>(32, 7))
      .text();
}

// One random edit, biased to what matters: digits, structure, and the length field.
void mutate(std::string& text, std::mt19937_64& random) {
  static constexpr std::string_view kTokens[] = {"0",
                                                 "9",
                                                 "-",
                                                 "[",
                                                 "]",
                                                 "{",
                                                 "}",
                                                 ",",
                                                 ":",
                                                 "\"",
                                                 "e",
                                                 ".",
                                                 "9223372036854775807",
                                                 "18446744073709551615",
                                                 "\\u0000",
                                                 "\xff",
                                                 "null",
                                                 "BF16",
                                                 "F64",
                                                 "data_offsets",
                                                 "shape"};
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const size_t at = below(text.size());
  switch (below(7)) {
    case 0: text[at] = static_cast<char>(random()); break;
    case 1: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
    case 2: text.erase(at, 1 + below(8)); break;
    case 3: text.insert(at, kTokens[below(std::size(kTokens))]); break;
    case 4: text.insert(below(text.size()), text.substr(at, 1 + below(40))); break;
    case 5: text.resize(at); break;
    default: {
      const size_t digit = text.find_first_of("0123456789", at);
      if (digit != text.npos) text[digit] = static_cast<char>('0' + below(10));
    }
  }
  if (text.size() < 8) text.resize(8);
}

constexpr const char* kConfig =
    R"({"hidden_size":288,"layer_types":["sliding_attention","full_attention"],"eos_token_id":[1,2],)"
    R"("rms_norm_eps":1e-05,"rope_theta":150000,"vocab_size":512,"tie_word_embeddings":false,)"
    R"("rope_scaling":{"beta_fast":32.0,"beta_slow":1.0,"factor":32.0,"rope_type":"yarn",)"
    R"("original_max_position_embeddings":4096,"truncate":false},"model_type":"gpt_oss"})";

// Reads everything as a model does; an exception other than UserError fails the test.
bool reads(const std::string& text, const std::string& folder) {
  const auto config = HfConfig::parse(text, "config.json");
  if (!config) return false;
  try {
    config->integer("hidden_size", {1, 1 << 20});
    config->strings("layer_types");
    config->real("rms_norm_eps", {kAboveZero, 1});
    config->boolean_or("tie_word_embeddings", false);
    config->string("model_type");
    if (!std::isfinite(read_rope(*config).attention_scale())) throw CheckError(text);
  } catch (const UserError& e) {
    EXPECT_EQ(e.error.message.rfind("config.json: ", 0), 0u) << e.error.message;
    EXPECT_EQ(e.error.message.find('\n'), std::string::npos) << e.error.message;
    return false;
  }
  return GenerationConfig::open(folder, *config).ok();
}

// Half of the time the length field is repaired, so that the damage reaches the JSON.
void repair_length(std::string& text, size_t header_change) {
  uint64_t size = 0;
  std::memcpy(&size, text.data(), sizeof(size));
  size += header_change;
  std::memcpy(text.data(), &size, sizeof(size));
}

TEST(SafetensorsFuzz, ValueOrErrorNeverACrash) {
  constexpr int kRounds = 100000;
  const std::string original = valid_file();
  std::mt19937_64 random(20240611);
  int num_accepted = 0;
  uint64_t touched = 0;
  std::set<std::string> messages;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = original;
    for (uint64_t i = 0, n = 1 + random() % 3; i < n; ++i) mutate(text, random);
    if (round % 2 == 0) repair_length(text, text.size() - original.size());
    // Exactly as many bytes as the file has, on the heap: the sanitizer sees a read past its end.
    const std::unique_ptr<uint8_t[]> bytes(new uint8_t[text.size()]);
    std::memcpy(bytes.get(), text.data(), text.size());
    const auto result = parse_safetensors({bytes.get(), text.size()}, "f");
    if (!result) {
      ASSERT_EQ(result.error().message.rfind("f: ", 0), 0u) << result.error().message;
      ASSERT_EQ(result.error().message.find('\n'), std::string::npos);
      messages.insert(result.error().message);
      continue;
    }
    ++num_accepted;
    for (const TensorEntry& entry : *result) {
      for (const uint8_t byte : entry.bytes) touched += byte;
    }
  }
  RecordProperty("accepted", num_accepted);
  RecordProperty("different_messages", static_cast<int>(messages.size()));
  // Damage to names, data and __metadata__ is invisible; most else must be noticed, in many ways.
  EXPECT_GT(num_accepted, kRounds / 100);
  EXPECT_LT(num_accepted, kRounds / 2);
  EXPECT_GT(messages.size(), 1000u);
  EXPECT_GT(touched, 0u);
}

TEST(ConfigFuzz, ValueOrErrorNeverACrash) {
  constexpr int kRounds = 30000;
  TempFolder folder;
  ASSERT_TRUE(reads(kConfig, folder.path()));
  std::mt19937_64 random(7);
  int num_accepted = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = kConfig;
    for (uint64_t i = 0, n = 1 + random() % 3; i < n; ++i) mutate(text, random);
    num_accepted += reads(text, folder.path()) ? 1 : 0;
  }
  RecordProperty("accepted", num_accepted);
  EXPECT_GT(num_accepted, kRounds / 100);
  EXPECT_LT(num_accepted, kRounds / 2);
}

}  // namespace
}  // namespace briar
