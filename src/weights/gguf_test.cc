#include "weights/gguf.h"

#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <random>
#include <set>

#include "weights/gguf_sample.h"
#include "weights/test_util.h"

namespace briar {
namespace {

constexpr uint32_t kF32 = 0, kQ4_1 = 3, kQ8_0 = 8;

std::string error_of(const std::string& text) {
  const auto result = parse_gguf(as_bytes(text), "m.gguf");
  return result ? "no error" : result.error().message;
}

GgufBuilder small_file() {
  GgufBuilder b;
  b.key("general.architecture", "llama")
      .key("llama.block_count", 30u)
      .key("llama.rope.freq_base", 1e5f)
      .key("flag", GgufType::kBool, std::string(1, '\1'))
      .key("tokenizer.ggml.tokens", GgufType::kArray, gguf_strings({"a", "", "\xc4\xa0the"}))
      .key("tokenizer.ggml.token_type", GgufType::kArray,
           gguf_array(GgufType::kInt32, 2, gguf_bytes<int32_t>(1) + gguf_bytes<int32_t>(-3)))
      .key("scores", GgufType::kArray,
           gguf_array(GgufType::kFloat32, 2, gguf_bytes(0.5f) + gguf_bytes(-2.f)))
      .key("nested", GgufType::kArray,
           gguf_array(GgufType::kArray, 2, gguf_strings({"x"}) + gguf_strings({})))
      .tensor("norm", {3}, kF32, gguf_bytes(1.f) + gguf_bytes(2.f) + gguf_bytes(3.f))
      .tensor("table", {64, 2}, kQ8_0, std::string(4 * 34, '\7'));
  return b;
}

TEST(Gguf, ReadsMetadata) {
  const std::string text = small_file().text();
  const auto contents = parse_gguf(as_bytes(text), "m.gguf");
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  const GgufMetadata& m = contents->metadata;
  EXPECT_EQ(m.keys().size(), 8u);
  EXPECT_EQ(m.keys().front(), "general.architecture");
  EXPECT_EQ(m.find_string("general.architecture"), "llama");
  EXPECT_EQ(m.find_integer("llama.block_count"), 30);
  EXPECT_EQ(m.find_real("llama.block_count"), 30.0);
  EXPECT_EQ(m.find_real("llama.rope.freq_base"), 1e5);
  EXPECT_EQ(m.find_bool("flag"), true);
  EXPECT_EQ(m.find_strings("tokenizer.ggml.tokens"),
            (std::vector<std::string_view>{"a", "", "\xc4\xa0the"}));
  EXPECT_EQ(m.find_integers("tokenizer.ggml.token_type"), (std::vector<int64_t>{1, -3}));
  EXPECT_EQ(m.find_reals("scores"), (std::vector<float>{0.5f, -2.f}));
  EXPECT_FALSE(m.find_string("absent").has_value());
  EXPECT_FALSE(m.find_strings("absent").has_value());
}

TEST(Gguf, ReadsTensors) {
  for (const uint32_t version : {2u, 3u}) {
    GgufBuilder builder = small_file();
    builder.version = version;
    const std::string text = builder.text();
    const auto contents = parse_gguf(as_bytes(text), "m.gguf");
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    ASSERT_EQ(contents->tensors.size(), 2u);
    const TensorEntry& norm = contents->tensors[0];
    EXPECT_EQ(norm.name, "norm");
    EXPECT_EQ(norm.dtype, WireDType::kF32);
    EXPECT_EQ(norm.shape, (std::vector<int64_t>{3}));
    EXPECT_EQ(std::memcmp(norm.bytes.data(), "\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40", 12), 0);
    const TensorEntry& table = contents->tensors[1];
    EXPECT_EQ(table.dtype, WireDType::kQ8_0);
    EXPECT_EQ(table.shape, (std::vector<int64_t>{2, 64}));
    EXPECT_EQ(table.num_elements(), 128);
    EXPECT_EQ(table.bytes.size(), 4u * 34);
    EXPECT_EQ(table.bytes[0], 7);
  }
}

TEST(Gguf, WrongKindsNameKeyAndType) {
  const std::string text = small_file().text();
  const auto contents = parse_gguf(as_bytes(text), "m.gguf");
  ASSERT_TRUE(contents.ok());
  const GgufMetadata& m = contents->metadata;
  expect_mentions(user_error_of([&] { m.find_string("flag"); }),
                  {"m.gguf: flag is of type bool, expected a string"});
  expect_mentions(user_error_of([&] { m.find_integer("general.architecture"); }),
                  {"general.architecture is of type string, expected an integer"});
  expect_mentions(user_error_of([&] { m.find_strings("scores"); }),
                  {"scores is an array of float32, expected strings"});
  expect_mentions(user_error_of([&] { m.find_strings("nested"); }),
                  {"nested is an array of array, expected strings"});
  expect_mentions(user_error_of([&] { m.find_integers("flag"); }),
                  {"flag is of type bool, expected an array"});
}

TEST(Gguf, KeepsItsAlignment) {
  GgufBuilder b;
  b.alignment = 64;
  b.key("general.alignment", 64u)
      .tensor("a", {1}, kF32, gguf_bytes(1.f))
      .tensor("b", {1}, kF32, gguf_bytes(2.f));
  const std::string text = b.text();
  const auto contents = parse_gguf(as_bytes(text), "m.gguf");
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  EXPECT_EQ(contents->tensors[1].bytes.data() - contents->tensors[0].bytes.data(), 64);
  // The last tensor's padding may be missing.
  EXPECT_TRUE(parse_gguf(as_bytes(text.substr(0, text.size() - 60)), "m.gguf").ok());
}

struct Refusal {
  const char* name;
  std::string text;
  std::vector<std::string> mentions;
};

std::vector<Refusal> refusals() {
  const auto one = [](const char* key, GgufType type, const std::string& bytes) {
    return GgufBuilder().key(key, type, bytes).text();
  };
  const auto tensor = [](const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset) {
    return GgufBuilder().entry("t", sizes, type, offset).text() + std::string(64, '\0');
  };
  const auto version = [](uint32_t number) {
    GgufBuilder b;
    b.version = number;
    return b.text();
  };
  const std::string f32 = gguf_bytes(1.f);
  const std::string valid = small_file().text();
  return {
      {"Empty", "", {"is it truncated?"}},
      {"Magic", "GGML" + valid.substr(4), {"does not begin with \"GGUF\""}},
      {"VersionOne", version(1), {"version 1; versions 2 and 3"}},
      {"BigEndian", version(0x03000000), {"a big-endian file"}},
      {"CutInTheHeader", valid.substr(0, 10), {"within the header"}},
      {"CutInTheMetadata", valid.substr(0, 90), {"is it truncated?"}},
      {"CutInTheData", valid.substr(0, valid.size() - 60), {"tensor table", "truncated"}},
      {"KeyTwice", GgufBuilder().key("a", 1u).key("a", 2u).text(), {"key a is given twice"}},
      {"EmptyKey", GgufBuilder().key("", 1u).text(), {"metadata key 0 is empty"}},
      {"ValueType", one("a", static_cast<GgufType>(13), "x"), {"unknown value type 13"}},
      {"Bool", one("a", GgufType::kBool, "\2"), {"a is a bool of 2"}},
      {"ArrayBool",
       one("a", GgufType::kArray, gguf_array(GgufType::kBool, 2, "\1\3")),
       {"a is a bool of 3"}},
      {"ArrayType",
       one("a", GgufType::kArray, gguf_array(static_cast<GgufType>(99), 1, "x")),
       {"unknown value type 99"}},
      {"AlignmentZero", GgufBuilder().key("general.alignment", 0u).text(), {"alignment is 0"}},
      {"AlignmentOdd", GgufBuilder().key("general.alignment", 24u).text(), {"alignment is 24"}},
      {"AlignmentType", GgufBuilder().key("general.alignment", "32").text(), {"string"}},
      {"TensorTwice",
       GgufBuilder().tensor("t", {1}, kF32, f32).tensor("t", {1}, kF32, f32).text(),
       {"tensor t is listed twice"}},
      {"NoName", GgufBuilder().tensor("", {1}, kF32, f32).text(), {"tensor 0 has no name"}},
      {"RankZero", tensor({}, kF32, 0), {"tensor t has 0 dimensions"}},
      {"RankFive", tensor({1, 1, 1, 1, 1}, kF32, 0), {"has 5 dimensions, expected 1 to 4"}},
      {"ZeroSize", tensor({4, 0}, kF32, 0), {"a dimension of 0"}},
      {"TypeQ5", tensor({32}, 6, 0), {"the type Q5_0", "supported: F32, F16"}},
      {"TypeUnknown", tensor({32}, 77, 0), {"number 77"}},
      {"PartOfABlock", tensor({48}, kQ4_1, 0), {"Q4_1 [48]", "no whole number of blocks"}},
      {"OffsetUnaligned", tensor({1}, kF32, 4), {"byte 4", "the alignment is 32"}},
      {"OffsetHole", tensor({1}, kF32, 32), {"a hole before it"}},
      {"OffsetHuge", tensor({1}, kF32, uint64_t{1} << 63), {"a hole"}},
      {"Overlap",
       GgufBuilder().tensor("a", {16}, kF32, std::string(64, 'x')).entry("b", {8}, kF32, 32).text(),
       {"tensor b begins at byte 32", "overlaps"}},
      {"SameBytes",
       GgufBuilder().tensor("a", {8}, kF32, std::string(32, 'x')).entry("b", {8}, kF32, 0).text(),
       {"overlaps"}},
      {"Trailing", valid + std::string(1, 'x'), {"belong to no tensor"}},
      {"NameWithNewline", GgufBuilder().entry("a\nb", {48}, kQ4_1, 0).text(), {"tensor a\\x0ab"}},
  };
}

TEST(Gguf, RefusesWithOneClearLine) {
  for (const Refusal& r : refusals()) {
    SCOPED_TRACE(r.name);
    const std::string message = error_of(r.text);
    EXPECT_EQ(message.rfind("m.gguf: ", 0), 0u) << message;
    expect_mentions(message, r.mentions);
  }
}

TEST(Gguf, EveryTruncationIsRefused) {
  const std::string text = small_file().text();
  const size_t last_byte = text.size() - 24;  // 4 blocks of 34 bytes, padded to 160
  for (size_t size = 0; size < last_byte; ++size) {
    EXPECT_NE(error_of(text.substr(0, size)), "no error") << size;
  }
  EXPECT_EQ(error_of(text.substr(0, last_byte)), "no error");
}

// users.md, W08 (ollama/ollama#17042): counts that were trusted before anything was read.
TEST(UsersW08, HostileGgufIsRefusedAtOnceAndWithoutMemory) {
  const auto with_counts = [](uint64_t num_keys, uint64_t num_tensors) {
    GgufBuilder b;
    b.num_keys = num_keys;
    b.num_tensors = num_tensors;
    return b.text() + std::string(1000, '\0');
  };
  std::string deep;
  for (int i = 0; i < 1000; ++i) {
    deep = gguf_array(i == 0 ? GgufType::kUint8 : GgufType::kArray, i == 0 ? 0 : 1, deep);
  }
  const auto one = [](GgufType type, const std::string& bytes) {
    return GgufBuilder().key("k", type, bytes).text();
  };
  const uint64_t huge = uint64_t{1} << 50;
  const std::vector<Refusal> cases = {
      {"Keys", with_counts(uint64_t{1} << 60, 0), {"claims 1152921504606846976 metadata keys"}},
      {"KeysInTheLimit", with_counts(kMaxGgufKeys, 0), {"too many for its"}},
      {"Tensors", with_counts(0, uint64_t{1} << 60), {"claims 1152921504606846976 tensors"}},
      {"TensorsInTheLimit", with_counts(0, kMaxGgufTensors), {"too many for its"}},
      {"String", one(GgufType::kString, gguf_bytes(huge) + "abc"), {"1125899906842624 bytes"}},
      {"Strings",
       one(GgufType::kArray, gguf_array(GgufType::kString, huge, "abc")),
       {"1125899906842624 values of type string"}},
      {"StringInArray",
       one(GgufType::kArray, gguf_array(GgufType::kString, 1, gguf_bytes(huge))),
       {"a string of 1125899906842624 bytes"}},
      {"Wrapping",
       one(GgufType::kArray, gguf_array(GgufType::kUint64, (uint64_t{1} << 61) + 1, "12345678")),
       {"2305843009213693953 values"}},
      {"Deep", one(GgufType::kArray, deep), {"nests arrays more than 4 deep"}},
      {"Elements",
       GgufBuilder().entry("t", {uint64_t{1} << 63}, kF32, 0).text(),
       {"a dimension of 9223372036854775808"}},
      {"ElementsOfTwo",
       GgufBuilder().entry("t", {uint64_t{1} << 61, 4}, kF32, 0).text(),
       {"more than 2^63 bytes"}},
      {"KeyLength",
       GgufBuilder().text().substr(0, 16) + gguf_bytes<uint64_t>(1) + gguf_bytes(huge) +
           std::string(100, 'x'),
       {"a metadata key", "more than 65535"}},
  };
  for (const Refusal& c : cases) {
    SCOPED_TRACE(c.name);
    struct rusage before {
    }, after{};
    getrusage(RUSAGE_SELF, &before);
    const auto start = std::chrono::steady_clock::now();
    const std::string message = error_of(c.text);
    const auto taken = std::chrono::steady_clock::now() - start;
    getrusage(RUSAGE_SELF, &after);
    expect_mentions(message, c.mentions);
    EXPECT_LT(taken, std::chrono::milliseconds(100));
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 10 * 1024) << "KiB";
  }
}

// Random damage: contents or an error. Under the asan preset every byte handed out is checked.
TEST(GgufFuzz, ValueOrErrorNeverACrash) {
  constexpr int kRounds = 50000;
  const std::string original = small_file().text();
  std::mt19937_64 random(97);
  int num_accepted = 0;
  uint64_t touched = 0;
  std::set<std::string> messages;
  for (int round = 0; round < kRounds; ++round) {
    std::string text = original;
    for (uint64_t i = 0, n = 1 + random() % 3; i < n; ++i) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0: text[at] = static_cast<char>(random()); break;
        case 1: text[at] = static_cast<char>(text[at] ^ (1 << random() % 8)); break;
        case 2: text.erase(at, 1 + random() % 8); break;
        default: text.insert(at, gguf_bytes<uint64_t>(uint64_t{1} << random() % 64));
      }
    }
    const std::unique_ptr<uint8_t[]> bytes(new uint8_t[text.size()]);
    std::memcpy(bytes.get(), text.data(), text.size());
    const auto result = parse_gguf({bytes.get(), text.size()}, "f");
    if (!result) {
      ASSERT_EQ(result.error().message.rfind("f: ", 0), 0u) << result.error().message;
      messages.insert(result.error().message);
      continue;
    }
    ++num_accepted;
    for (const TensorEntry& entry : result->tensors) {
      for (const uint8_t byte : entry.bytes) touched += byte;
    }
  }
  EXPECT_GT(num_accepted, kRounds / 100);
  EXPECT_LT(num_accepted, kRounds * 3 / 4);
  EXPECT_GT(messages.size(), 200u);
  EXPECT_GT(touched, 0u);
}

}  // namespace
}  // namespace briar
