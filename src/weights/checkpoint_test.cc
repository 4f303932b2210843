#include "weights/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "weights/test_util.h"

namespace briar {
namespace {

std::string one_tensor(const std::string& name, uint8_t value = 1) {
  return SafetensorsBuilder().add(name, "U8", "[1]", std::vector<uint8_t>{value}).text();
}

std::string error_of(const std::string& folder) {
  const auto checkpoint = Checkpoint::open(folder);
  return checkpoint.ok() ? "no error" : checkpoint.error().message;
}

constexpr const char* kIndex = "model.safetensors.index.json";

TEST(Checkpoint, ReadsASingleFile) {
  TempFolder folder;
  folder.write("model.safetensors", one_tensor("a", 5));
  folder.write("consolidated.safetensors", one_tensor("b"));
  const auto checkpoint = Checkpoint::open(folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ((*checkpoint)->path(), folder.path());
  EXPECT_EQ((*checkpoint)->tensors().size(), 1u);
  ASSERT_NE((*checkpoint)->find("a"), nullptr);
  EXPECT_EQ((*checkpoint)->find("a")->bytes[0], 5);
  EXPECT_EQ((*checkpoint)->find("b"), nullptr);
  EXPECT_EQ((*checkpoint)->num_bytes(), 1);
}

TEST(Checkpoint, ReadsShardsOfAnIndexAndWithoutOne) {
  TempFolder folder;
  folder.write("x-1.safetensors", one_tensor("a", 3));
  folder.write("x-2.safetensors", one_tensor("b", 4));
  for (const bool has_index : {false, true}) {
    if (has_index) {
      // Files that the index leaves out are not read.
      folder.write("y.safetensors", "rubbish");
      folder.write(kIndex, R"({"metadata":{"total_size":2},
          "weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors"}})");
    }
    const auto checkpoint = Checkpoint::open(folder.path());
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ((*checkpoint)->find("a")->bytes[0], 3);
    EXPECT_EQ((*checkpoint)->find("b")->bytes[0], 4);
    EXPECT_EQ((*checkpoint)->find("b")->file, folder.path() + "/x-2.safetensors");
  }
}

TEST(Checkpoint, RefusesFoldersWithoutWeights) {
  TempFolder folder;
  expect_mentions(error_of(folder.path()), {folder.path(), "holds no weights"});
  expect_mentions(error_of(folder.path() + "/x"), {folder.path() + "/x: no such folder"});
  folder.write("f", "text");
  expect_mentions(error_of(folder.path() + "/f"), {"/f: does not begin with \"GGUF\""});
  std::filesystem::create_directory(folder.path() + "/model.safetensors");
  expect_mentions(error_of(folder.path()), {"/model.safetensors: not a regular file"});
}

TEST(Checkpoint, RefusesAnEmptyFile) {
  TempFolder folder;
  folder.write("model.safetensors", "");
  expect_mentions(error_of(folder.path()), {"/model.safetensors: 0 bytes"});
}

TEST(Checkpoint, RefusesDuplicateNamesAcrossFiles) {
  TempFolder folder;
  folder.write("x.safetensors", one_tensor("model.w"));
  folder.write("y.safetensors", one_tensor("model.w"));
  expect_mentions(error_of(folder.path()), {"y.safetensors: tensor model.w", "x.safetensors too"});
}

TEST(Checkpoint, RefusesBadIndexes) {
  TempFolder folder;
  folder.write("x.safetensors", one_tensor("a"));
  folder.write("y.safetensors", one_tensor("b"));
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"", {kIndex}},
      {"[]", {kIndex, "not a JSON object"}},
      {"{", {kIndex, "JSON"}},
      {"{}", {kIndex, "weight_map is missing"}},
      {R"({"weight_map":[1]})", {kIndex, "weight_map is [1]"}},
      {R"({"weight_map":{}})", {kIndex, "weight_map is empty"}},
      {R"({"weight_map":{"a":7}})", {kIndex, "weight_map[\"a\"] is 7"}},
      {R"({"weight_map":{"a":""}})", {kIndex, "weight_map[\"a\"] is \"\""}},
      {R"({"weight_map":{"a":".."}})", {"weight_map[\"a\"] is \"..\""}},
      {R"({"weight_map":{"a":"../x.safetensors"}})", {"\"../x.safetensors\"", "in this folder"}},
      {R"({"weight_map":{"a":"/etc/passwd"}})", {"weight_map[\"a\"] is \"/etc/passwd\""}},
      {R"({"weight_map":{"a":"x.safetensors\u0000"}})", {"x.safetensors\\x00"}},
      {R"({"weight_map":{"a":"p.safetensors","b":"q.safetensors"}})",
       {folder.path(), "p.safetensors, q.safetensors"}},
      {R"({"weight_map":{"a":"x.safetensors","z":"y.safetensors"}})",
       {kIndex, "tensor z in y.safetensors"}},
      {R"({"weight_map":{"a":"y.safetensors","b":"x.safetensors"}})",
       {kIndex, "tensor a in y.safetensors"}},
  };
  for (const auto& [text, mentions] : cases) {
    SCOPED_TRACE(text);
    folder.write(kIndex, text);
    expect_mentions(error_of(folder.path()), mentions);
  }
}

TEST(Checkpoint, OpensTheBundledModels) {
  const std::string models = std::string(BRIAR_ASSETS_DIR) + "/models/";
  // Counts and sums of the headers' shapes, by a Python script that reads them with struct and
  // json.
  for (const auto& [name, num_tensors, num_bytes] :
       {std::tuple("tiny-harmony", 117u, 171342528),
        std::tuple("tiny-harmony-draft", 41u, 157177568),
        std::tuple("gpt-oss-random", 79u, 6573008)}) {
    const auto checkpoint = Checkpoint::open(models + name);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ((*checkpoint)->tensors().size(), num_tensors) << name;
    EXPECT_EQ((*checkpoint)->num_bytes(), num_bytes) << name;
  }
}

}  // namespace
}  // namespace briar
