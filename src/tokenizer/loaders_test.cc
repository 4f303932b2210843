// Files that are not what they should be are refused in one line that says where and why.
#include "tokenizer/loaders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tokenizer/split.h"
#include "tokenizer/tokenizer_test_util.h"

namespace briar {
namespace {

namespace bj = boost::json;

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = i; j < i + 3; ++j) {
      bits = bits << 8 | (j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j)
      out += i + j <= bytes.size() ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

// All single bytes, then `more`.
std::string ranks_with(const std::vector<std::string>& more) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    text += base64({&c, 1}) + " " + std::to_string(byte) + "\n";
  }
  for (size_t i = 0; i < more.size(); ++i) {
    text += base64(more[i]) + " " + std::to_string(256 + i) + "\n";
  }
  return text;
}

void expect_error(const Error& error, std::string_view part) {
  EXPECT_NE(error.message.find(part), std::string::npos) << error.message << "\n  lacks " << part;
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
}

TEST(Tiktoken, ReadsEveryLengthOfPadding) {
  const auto vocabulary =
      parse_tiktoken(ranks_with({"ab", "abc", "abcd", "\xFF\xFE"}), "r").value();
  EXPECT_EQ(vocabulary.tokens().size(), 260);
  EXPECT_EQ(vocabulary.tokens()[258], "abcd");
  const std::string text = "\xFF\xFE!";
  EXPECT_EQ(vocabulary.find(text.data(), 2, text.data() + 3), 259);
  EXPECT_EQ(vocabulary.find(text.data(), 3, text.data() + 3), kNoToken);
}

TEST(Tiktoken, ErrorsNameSourceAndLine) {
  const std::string good = ranks_with({"ab"});
  const auto error_of = [](const std::string& text) {
    auto parsed = parse_tiktoken(text, "x.tiktoken");
    EXPECT_FALSE(parsed.ok());
    return parsed.ok() ? Error{} : parsed.error();
  };
  expect_error(error_of(good + "YWI=\n"), "x.tiktoken:258: ");
  expect_error(error_of(good + "YW!j 257\n"), "x.tiktoken:258: ");
  expect_error(error_of(good + "YWJ 257\n"), "x.tiktoken:258: ");
  expect_error(error_of(good + " 257\n"), "x.tiktoken:258: ");
  expect_error(error_of(good + "\n"), "x.tiktoken:258: ");
  expect_error(error_of(good + "YWJj 259\n"), "x.tiktoken:258: the rank must be 257");
  expect_error(error_of(good + "YWJj 257x\n"), "x.tiktoken:258: the rank must be 257");
  expect_error(error_of(good + "YWJj -1\n"), "x.tiktoken:258: the rank must be 257");
  expect_error(error_of(good + "YWJj 99999999999999\n"), "x.tiktoken:258: the rank must be 257");
  expect_error(error_of(ranks_with({"ab", "ab"})), "x.tiktoken: token 257 has the same bytes");
  expect_error(error_of(ranks_with({std::string(40, 'a'), std::string(40, 'a')})), "token 257");
  expect_error(error_of(""), "x.tiktoken: the vocabulary has no token for the single byte 0x00");
}

TEST(Tiktoken, ACutOffFileIsRefused) {
  const auto file = MappedFile::open(test::asset("tokenizer/o200k_base.tiktoken")).value();
  const std::string_view text = file.text();
  const auto cut_line = Tokenizer::from_tiktoken(text.substr(0, text.size() - 3), "cut");
  ASSERT_FALSE(cut_line.ok());
  expect_error(cut_line.error(), "cut:199998: the rank must be 199997");
  const size_t half = text.find('\n', text.size() / 2) + 1;
  const auto cut_file = Tokenizer::from_tiktoken(text.substr(0, half), "cut");
  ASSERT_FALSE(cut_file.ok());
  expect_error(cut_file.error(), "but o200k_base has 199998");
}

// A small tokenizer.json of the right shape: 256 bytes, "ab" and "abc", one special token.
bj::object small_tokenizer() {
  bj::object vocab;
  for (int32_t id = 0; id < 256; ++id) {
    // The same alphabet as in GPT-2: see ByteAlphabet in tokenizer_json.cc.
    const bool is_printable = (id >= 0x21 && id <= 0x7E) || (id >= 0xA1 && id != 0xAD);
    static int32_t num_others;
    if (id == 0) num_others = 0;
    vocab[test::utf8(static_cast<char32_t>(is_printable ? id : 256 + num_others++))] = id;
  }
  vocab["ab"] = 256;
  vocab["abc"] = 257;
  const bj::value split = {{"type", "Split"},
                           {"pattern", {{"Regex", std::string(kO200kPattern)}}},
                           {"behavior", "Isolated"},
                           {"invert", false}};
  const bj::value byte_level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {
      {"added_tokens", bj::array{{{"id", 300}, {"content", "<|end|>"}, {"special", true}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", bj::array{split, byte_level}}}},
      {"model",
       {{"type", "BPE"},
        {"ignore_merges", true},
        {"vocab", vocab},
        {"merges", bj::array{bj::array{"a", "b"}, "ab c"}}}}};
}

Result<std::shared_ptr<const Tokenizer>> load_text(const std::string& text) {
  const std::string path =
      testing::TempDir() + "/briar_loaders_" + std::to_string(getpid()) + "_tokenizer.json";
  std::ofstream(path) << text;
  return Tokenizer::load_tokenizer_json(path);
}

TEST(TokenizerJson, ReadsASmallOne) {
  const auto tokenizer = load_text(bj::serialize(small_tokenizer())).value();
  EXPECT_EQ(tokenizer->vocab_size(), 301);
  EXPECT_EQ(tokenizer->encode("abcab a"), (std::vector<int32_t>{257, 256, ' ', 'a'}));
  EXPECT_EQ(tokenizer->encode_with_specials("ab<|end|>"), (std::vector<int32_t>{256, 300}));
  EXPECT_FALSE(tokenizer->token_bytes(258).has_value());
}

TEST(TokenizerJson, ASpecialTokenInTheVocabularyStaysSpecial) {
  bj::object root = small_tokenizer();
  root["model"].at("vocab").as_object()["<|end|>"] = 300;
  const auto tokenizer = load_text(bj::serialize(root)).value();
  for (const int32_t id : tokenizer->encode("<|end|>")) EXPECT_LT(id, 256);
}

TEST(TokenizerJson, RefusesWhatItWouldNotDoExactly) {
  const auto expect_refused = [](std::string_view part,
                                 const std::function<void(bj::object&)>& change) {
    bj::object root = small_tokenizer();
    change(root);
    const auto loaded = load_text(bj::serialize(root));
    ASSERT_FALSE(loaded.ok()) << part;
    expect_error(loaded.error(), part);
    expect_error(loaded.error(), std::to_string(getpid()) + "_tokenizer.json: ");
  };
  const auto model = [](bj::object& root) -> bj::object& { return root["model"].as_object(); };
  const auto added = [](bj::object& root) -> bj::object& {
    return root["added_tokens"].as_array()[0].as_object();
  };
  expect_refused("model.type is \"Unigram\"", [&](auto& r) { model(r)["type"] = "Unigram"; });
  expect_refused("model.dropout", [&](auto& r) { model(r)["dropout"] = 0.1; });
  const auto step = [](bj::object& root, size_t i) -> bj::object& {
    return root["pre_tokenizer"].at("pretokenizers").at(i).as_object();
  };
  expect_refused("model.unk_token is \"<unk>\", which is no special",
                 [&](auto& r) { model(r)["unk_token"] = "<unk>"; });
  expect_refused("the normalizer {\"type\":\"Lowercase\"}", [&](auto& r) {
    r["normalizer"] = {{"type", "Lowercase"}};
  });
  expect_refused("neither byte-level nor", [&](auto& r) { r.erase("pre_tokenizer"); });
  expect_refused("the pre_tokenizer Whitespace is not supported", [&](auto& r) {
    r["pre_tokenizer"] = {{"type", "Whitespace"}};
  });
  expect_refused("the regular expression ( is wrong at byte 1: missing closing parenthesis",
                 [&](auto& r) { step(r, 0)["pattern"].as_object()["Regex"] = "("; });
  expect_refused("not by a regular expression", [&](auto& r) {
    step(r, 0)["pattern"] = {{"String", " "}};
  });
  expect_refused("behavior \"MergedWithNext\"",
                 [&](auto& r) { step(r, 0)["behavior"] = "MergedWithNext"; });
  expect_refused("adds a space", [&](auto& r) { step(r, 1)["add_prefix_space"] = true; });
  expect_refused("goes on behind ByteLevel", [&](auto& r) {
    r["pre_tokenizer"].at("pretokenizers").as_array().push_back(step(r, 0));
  });
  expect_refused("no content", [&](auto& r) { added(r).erase("content"); });
  expect_refused("the id of token \"<|end|>\" is -1", [&](auto& r) { added(r)["id"] = -1; });
  expect_refused("twice", [&](auto& r) { r["added_tokens"].as_array().push_back(added(r)); });
  expect_refused("has the id 97 of another", [&](auto& r) { added(r)["id"] = 97; });
  expect_refused("model.vocab is not an object", [&](auto& r) { model(r)["vocab"] = 3; });
  expect_refused("\"x y\" is not spelled",
                 [&](auto& r) { model(r)["vocab"].as_object()["x y"] = 258; });
  expect_refused("the id of token \"xy\" is 1E99",
                 [&](auto& r) { model(r)["vocab"].as_object()["xy"] = 1e99; });
  expect_refused("model.merges is not an array", [&](auto& r) { model(r).erase("merges"); });
  expect_refused("model.merges[1] is not a pair",
                 [&](auto& r) { model(r)["merges"].as_array()[1] = 5; });
  expect_refused("merge 1 is not two tokens that make a third",
                 [&](auto& r) { model(r)["merges"].as_array()[1] = "a c"; });
  expect_refused("merge 2 is there twice", [&](auto& r) {
    model(r)["merges"].as_array().emplace_back("a b");
    model(r)["merges"].as_array().emplace_back("ab c");
  });
}

// The list of merges decides, not the ids: "ab" has no merge here, so only the whole piece is it.
TEST(TokenizerJson, MergesAreThoseOfTheList) {
  bj::object root = small_tokenizer();
  bj::object& model = root["model"].as_object();
  model["merges"] = bj::array{"b c", "a bc"};
  model["vocab"].as_object()["bc"] = 258;
  EXPECT_EQ(load_text(bj::serialize(root)).value()->encode("ab abcd"),
            (std::vector<int32_t>{256, ' ', 257, 'd'}));
  model["ignore_merges"] = false;
  EXPECT_EQ(load_text(bj::serialize(root)).value()->encode("ab abcd"),
            (std::vector<int32_t>{'a', 'b', ' ', 257, 'd'}));
}

TEST(TokenizerJson, AByteWithoutATokenIsDroppedOrUnknown) {
  bj::object root = small_tokenizer();
  bj::object& model = root["model"].as_object();
  model["vocab"].as_object().erase("z");
  EXPECT_EQ(load_text(bj::serialize(root)).value()->encode("azzb"), (std::vector<int32_t>{256}));
  model["unk_token"] = "<|end|>";
  EXPECT_EQ(load_text(bj::serialize(root)).value()->encode("azzb"),
            (std::vector<int32_t>{'a', 300, 300, 'b'}));
  model["fuse_unk"] = true;
  EXPECT_EQ(load_text(bj::serialize(root)).value()->encode("azzb"),
            (std::vector<int32_t>{'a', 300, 'b'}));
}

TEST(TokenizerJson, RefusesBadJsonWithItsPlace) {
  for (const std::string text : {"", "{", "[]", "{\"model\": }"}) {
    const auto loaded = load_text(text);
    ASSERT_FALSE(loaded.ok());
    expect_error(loaded.error(), std::to_string(getpid()) + "_tokenizer.json: ");
  }
  const auto missing = Tokenizer::load_tokenizer_json("/nowhere/tokenizer.json");
  ASSERT_FALSE(missing.ok());
  expect_error(missing.error(), "/nowhere/tokenizer.json: cannot open");
}

TEST(Load, TakesTokenizerJsonThenTheOnlyTiktokenFile) {
  EXPECT_EQ(Tokenizer::load(test::asset("tokenizer")).value()->vocab_size(), 200019);
  const std::filesystem::path directory = testing::TempDir() + "/briar_load_test";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const auto empty = Tokenizer::load(directory);
  ASSERT_FALSE(empty.ok());
  expect_error(empty.error(), "neither tokenizer.json nor a .tiktoken file");
  std::filesystem::copy_file(test::asset("tokenizer/o200k_base.tiktoken"),
                             directory / "a.tiktoken");
  EXPECT_EQ(Tokenizer::load(directory).value()->vocab_size(), 201088);
  std::ofstream(directory / "b.tiktoken") << "x";
  const auto two = Tokenizer::load(directory);
  ASSERT_FALSE(two.ok());
  expect_error(two.error(), "several .tiktoken files");
  const auto missing = Tokenizer::load(directory / "missing");
  ASSERT_FALSE(missing.ok());
  expect_error(missing.error(), "cannot read the directory");
}

}  // namespace
}  // namespace briar
