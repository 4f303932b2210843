#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include "weights/printable.h"
#include "weights/test_util.h"

namespace briar {
namespace {

// The error of a file with this header and `num_bytes` of data.
std::string error_of(std::string_view header, size_t num_bytes = 0) {
  const std::string text = safetensors_text(header, std::string(num_bytes, '\0'));
  const auto result = parse_safetensors(as_bytes(text), "f.safetensors");
  return result.ok() ? "no error" : result.error().message;
}

std::string tensor(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return fmt::format(R"({{"w":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape,
                     offsets);
}

struct Bad {
  std::string header;
  size_t num_bytes;
  std::vector<std::string> mentions;
};

void expect_bad(const std::vector<Bad>& cases) {
  for (const Bad& bad : cases) {
    SCOPED_TRACE(bad.header.substr(0, 200));
    std::vector<std::string> parts = bad.mentions;
    parts.push_back("f.safetensors: ");
    expect_mentions(error_of(bad.header, bad.num_bytes), parts);
  }
}

TEST(Safetensors, ReadsAllDtypes) {
  const std::vector<std::pair<const char*, int64_t>> dtypes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},     {"U32", 4},
      {"F32", 4},  {"F64", 8}, {"I64", 8}, {"U64", 8}};
  SafetensorsBuilder builder;
  for (const auto& [name, bytes] : dtypes) {
    builder.add(name, name, "[2,3]", std::vector<uint8_t>(static_cast<size_t>(6 * bytes)));
  }
  const std::string text = builder.text();
  const auto entries = parse_safetensors(as_bytes(text), "f");
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), dtypes.size());
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const TensorEntry& entry = (*entries)[i];
    EXPECT_EQ(entry.name, dtypes[i].first);
    EXPECT_STREQ(to_string(entry.dtype), dtypes[i].first);
    EXPECT_EQ(block_bytes(entry.dtype), dtypes[i].second);
    EXPECT_EQ(entry.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(entry.num_elements(), 6);
    EXPECT_EQ(entry.bytes.size(), static_cast<size_t>(6 * dtypes[i].second));
  }
}

TEST(Safetensors, FindsTheBytes) {
  const std::string header =
      R"({"b":{"shape":[2],"data_offsets":[3,5],"dtype":"U8"},"__metadata__":{"format":"pt"},)"
      R"("a":{"dtype":"I8","shape":[3],"data_offsets":[0,3]}}   )";
  const std::string text = safetensors_text(header, "abcde");
  const auto entries = parse_safetensors(as_bytes(text), "f");
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "b");
  EXPECT_EQ((*entries)[0].bytes[0], 'd');
  EXPECT_EQ((*entries)[1].bytes[2], 'c');
  EXPECT_EQ((*entries)[1].file, "f");
}

TEST(Safetensors, AcceptsAnEmptyHeader) {
  EXPECT_EQ(error_of("{}"), "no error");
  EXPECT_EQ(error_of(R"({"__metadata__":{}})"), "no error");
}

TEST(Safetensors, RefusesBadLengths) {
  expect_mentions(parse_safetensors(as_bytes(""), "f").error().message, {"f: ", "0 bytes"});
  expect_mentions(parse_safetensors(as_bytes("1234567"), "f").error().message, {"f: ", "7 bytes"});
  std::string text = safetensors_text("{}", "");
  text[0] = 3;
  expect_mentions(parse_safetensors(as_bytes(text), "f").error().message,
                  {"3 bytes", "file only 10", "truncated"});
  text[4] = 1;
  expect_mentions(parse_safetensors(as_bytes(text), "f").error().message,
                  {"4294967299", "limit of 100000000"});
  text.replace(0, 8, "\xff\xff\xff\xff\xff\xff\xff\xff");
  expect_mentions(parse_safetensors(as_bytes(text), "f").error().message,
                  {"18446744073709551615", "100000000"});
}

TEST(Safetensors, RefusesBrokenJson) {
  expect_bad({
      {"", 0, {"'{'"}},
      {" {}", 0, {"'{'"}},
      {"[]", 0, {"'{'"}},
      {"{", 0, {"does not end within its 1 bytes"}},
      {R"({"w":{"dtype":"U8","shape":[1],"data_off)", 1, {"does not end"}},
      {"{,}", 0, {"bad JSON", "byte 9"}},
      {"{\"\xff\":1}", 0, {"bad JSON"}},
      {"{} x", 0, {"after the header's JSON", "byte 11"}},
      {R"({"w":3})", 0, {"tensor w", "3 where an object belongs"}},
      {R"({"w":null})", 0, {"tensor w", "null"}},
      {R"({"w":[]})", 0, {"tensor w", "a list"}},
      {R"({"__metadata__":{"a":1}})", 0, {"__metadata__ holds 1"}},
      {R"({"__metadata__":{"a":{}}})", 0, {"__metadata__ holds an object"}},
      {R"({"__metadata__":"x"})", 0, {"__metadata__", "\"x\""}},
      {R"({"w":{"shape":[)" + std::string(100, '['), 0, {"tensor w", "shape[0] is a list"}},
      {std::string(R"({"w":)") + std::string(100000, '['), 0, {"tensor w", "a list"}},
      {R"({"w":{"dtype":{}}})", 0, {"tensor w", "dtype is an object"}},
  });
}

TEST(Safetensors, RefusesBadFields) {
  expect_bad({
      {R"({"w":{}})", 0, {"tensor w", "dtype is missing"}},
      {R"({"w":{"dtype":"U8","shape":[0]}})", 0, {"tensor w", "data_offsets is missing"}},
      {R"({"w":{"dtype":"U8","data_offsets":[0,0]}})", 0, {"tensor w", "shape is missing"}},
      {R"({"w":{"dtype":"U8","dtype":"U8"}})", 0, {"tensor w", "dtype is given twice"}},
      {R"({"w":{"type":"U8"}})", 0, {"tensor w", "unknown field \"type\""}},
      {tensor("[]", "[1]", "[0,1]"), 1, {"tensor w", "dtype is a list"}},
      {tensor("\"U8\"", "4", "[0,4]"), 4, {"tensor w", "shape is 4"}},
      {tensor("\"U8\"", "\"4\"", "[0,4]"), 4, {"tensor w", "shape is the string \"4\""}},
      {tensor("\"U8\"", "[\"4\"]", "[0,4]"), 4, {"shape[0] is the string \"4\""}},
      {tensor("\"U8\"", "[-4]", "[0,4]"), 4, {"tensor w", "shape[0] is -4"}},
      {tensor("\"U8\"", "[2,2.5]", "[0,4]"), 4, {"tensor w", "shape[1] is 2.5"}},
      {tensor("\"U8\"", "[1,true]", "[0,4]"), 4, {"tensor w", "shape[1] is true"}},
      {tensor("\"U8\"", "[1,null]", "[0,4]"), 4, {"tensor w", "shape[1] is null"}},
      {tensor("\"U8\"", "[1,{}]", "[0,4]"), 4, {"tensor w", "shape[1] is an object"}},
      {tensor("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, {"tensor w", "more than 8"}},
      {tensor("\"U8\"", "[9223372036854775808]", "[0,4]"), 4, {"shape[0] is 9223372036854775808"}},
      {tensor("\"U8\"", "[4294967296,4294967296]", "[0,4]"), 4, {"more than 2^63", "[0, 4]"}},
      {tensor("\"F64\"", "[1152921504606846976]", "[0,0]"), 0, {"more than 2^63"}},
      {tensor("\"U8\"", "[4]", "[0]"), 4, {"tensor w", "data_offsets has 1 entries"}},
      {tensor("\"U8\"", "[4]", "[]"), 4, {"tensor w", "data_offsets has 0 entries"}},
      {tensor("\"U8\"", "[4]", "[0,3]"), 4, {"U8 [4] needs 4 bytes", "[0, 3] give it 3"}},
      {tensor("\"U8\"", "[4]", "[0,5]"), 5, {"U8 [4] needs 4 bytes", "[0, 5] give it 5"}},
      {tensor("\"F32\"", "[2,0]", "[0,4]"), 4, {"F32 [2, 0] needs 0 bytes"}},
      {tensor("\"F32\"", "[]", "[0,0]"), 0, {"F32 [] needs 4 bytes"}},
  });
}

TEST(Safetensors, RefusesDuplicateNames) {
  const std::string w = R"("w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  expect_bad({{"{" + w + "," + w + "}", 0, {"tensor w is listed twice"}},
              // The same name in another spelling.
              {"{" + w + R"(,"\u0077":{}})", 0, {"tensor w is listed twice"}},
              {R"({"__metadata__":{},"__metadata__":{}})", 0, {"__metadata__ is listed twice"}}});
}

TEST(Safetensors, RefusesOverlapsAndHoles) {
  const auto two = [](const char* a, const char* b) {
    return fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":{}}},)"
                       R"("b":{{"dtype":"U8","shape":[4],"data_offsets":{}}}}})",
                       a, b);
  };
  EXPECT_EQ(error_of(two("[4,8]", "[0,4]"), 8), "no error");
  expect_bad({
      {two("[0,4]", "[3,7]"), 7, {"a and b overlap", "byte 4", "begins at 3"}},
      {two("[0,4]", "[0,4]"), 4, {"overlap", "begins at 0"}},
      {two("[0,4]", "[6,10]"), 10, {"bytes 4 to 6", "before tensor b", "no tensor"}},
      {two("[1,5]", "[5,9]"), 9, {"bytes 0 to 1", "before tensor a"}},
      {two("[0,4]", "[4,8]"), 11, {"bytes 8 to 11", "end of the data"}},
      {two("[0,4]", "[4,8]"), 7, {"tensor b", "ends at byte 8", "only 7", "truncated"}},
      {"{}", 5, {"bytes 0 to 5"}},
  });
}

TEST(Safetensors, ErrorsAreOneLine) {
  const std::string long_name(5000, 'x');
  expect_mentions(error_of(R"({"a\nb\u001b[31m":1})"), {"a\\x0ab\\x1b[31m"});
  EXPECT_LT(error_of("{\"" + long_name + "\":1}").size(), 300u);
  EXPECT_EQ(printable("\xc3\xa4\xc3\xa4", 3), "\xc3\xa4...");
}

TEST(Users, W04_OffsetsAreCheckedAgainstShapeAndFile) {
  expect_bad({
      {tensor("\"F32\"", "[1000,1000]", "[0,4]"), 4, {"tensor w", "needs 4000000", "[0, 4]"}},
      {tensor("\"F32\"", "[1]", "[8,4]"), 8, {"tensor w", "begins at 8, ends at 4"}},
      {tensor("\"F32\"", "[1]", "[0,4,8]"), 8, {"tensor w", "data_offsets has more than 2"}},
      {tensor("\"F32\"", "[1]", "[-4,0]"), 4, {"tensor w", "data_offsets[0] is -4"}},
      {tensor("\"F32\"", "[1]", "[0,1e19]"), 4, {"tensor w", "data_offsets[1] is 1e+19"}},
      {tensor("\"F32\"", "[1]", "[0,10000000000000000000]"),
       4,
       {"tensor w", "data_offsets[1] is 10000000000000000000"}},
      {tensor("\"F32\"", "[1]", "[9223372036854775804,9223372036854775807]"),
       4,
       {"tensor w", "9223372036854775807", "only 4"}},
  });
}

TEST(Users, W06_UnknownDtypesAreRefusedScalarsAndEmptyTensorsAccepted) {
  // The ranges are wild too: the dtype must be refused before anything trusts them.
  expect_bad({
      {tensor("\"Q7\"", "[4]", "[0,4000000]"), 4, {"tensor w", "unknown dtype \"Q7\""}},
      {tensor("\"\"", "[4]", "[0,4000000]"), 4, {"tensor w", "unknown dtype \"\""}},
      {tensor("5", "[4]", "[0,4000000]"), 4, {"tensor w", "dtype is 5"}},
      {tensor("\"bf16\"", "[2]", "[0,4]"), 4, {"unknown dtype \"bf16\""}},
  });
  for (const auto& [shape, offsets, size] :
       {std::tuple("[]", "[0,4]", 4u), std::tuple("[3,0]", "[0,0]", 0u),
        std::tuple("[0,4611686018427387904,4611686018427387904]", "[0,0]", 0u)}) {
    EXPECT_EQ(error_of(tensor("\"F32\"", shape, offsets), size), "no error");
  }
}

}  // namespace
}  // namespace briar
