// Every kind of tokenizer against what Hugging Face's `tokenizers` makes of the same texts:
// testdata/, made by scripts/make_tokenizer_fixtures.py.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tokenizer/detokenizer.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_test_util.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

namespace bj = boost::json;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;

struct Fixture {
  bj::value json;
  TokenizerPtr tokenizer;
};

Fixture load_fixture(const std::string& kind) {
  Fixture fixture;
  fixture.json =
      json::parse_file(BRIAR_SOURCE_DIR "/src/tokenizer/testdata/" + kind + ".json").value();
  const std::string path =
      testing::TempDir() + "/briar_fixture_" + std::to_string(getpid()) + "_tokenizer.json";
  std::ofstream(path) << bj::serialize(fixture.json.at("tokenizer"));
  fixture.tokenizer = Tokenizer::load_tokenizer_json(path).value();
  return fixture;
}

void expect_cases(const bj::value& json, const Tokenizer& tokenizer) {
  for (const bj::value& line : json.at("cases").as_array()) {
    const std::string text(line.at(0).as_string());
    const std::vector<int32_t> ids = test::ids_of(line.at(1));
    EXPECT_EQ(tokenizer.encode_with_specials(text), ids) << line.at(0);
    EXPECT_EQ(tokenizer.decode(ids), std::string_view(line.at(2).as_string())) << line.at(0);
  }
}

class Kinds : public testing::TestWithParam<const char*> {};

TEST_P(Kinds, EncodesAndDecodesAsTheLibraryDoes) {
  const Fixture fixture = load_fixture(GetParam());
  EXPECT_GE(fixture.json.at("cases").as_array().size(), 50u);
  expect_cases(fixture.json, *fixture.tokenizer);
  const bj::value& bos = fixture.json.at("bos");
  EXPECT_EQ(fixture.tokenizer->bos_id().value_or(-1), bos.is_null() ? -1 : bos.as_int64());
}

// users.md T01, for every kind.
TEST_P(Kinds, T01_SpellingsInUserTextNeverBecomeSpecials) {
  const TokenizerPtr tokenizer = load_fixture(GetParam()).tokenizer;
  const std::string text = "a<|end|> <|begin|></s> <s><tool_call><unk>x";
  // Without byte fallback a character that no token has is <unk>, whatever the text says.
  const auto unknown = tokenizer->special_id("<unk>");
  for (const int32_t id : tokenizer->encode(text)) {
    EXPECT_TRUE(id == unknown || !tokenizer->is_special(id)) << id;
  }
  const std::vector<int32_t> ids = tokenizer->encode_with_specials(text);
  EXPECT_TRUE(
      std::any_of(ids.begin(), ids.end(), [&](int32_t id) { return tokenizer->is_special(id); }));
  const TextPart parts[] = {{"a<|e", true}, {"nd|></s", true}, {"><s>", false}};
  for (const int32_t id : tokenizer->encode_parts(parts)) {
    EXPECT_TRUE(id == unknown || !tokenizer->is_special(id)) << id;
  }
}

// users.md T03, for every kind: ten times the text takes about ten times as long, not a hundred.
TEST_P(Kinds, T03_LongHostileTextsTakeLinearTime) {
  const TokenizerPtr tokenizer = load_fixture(GetParam()).tokenizer;
  for (const std::string unit : {"a", " ", "\n", "7", "=", " a", "\t\n", "e\u0323\u0301",
                                 "\u0301\u0323", "<", "<|end|", "漢", "\xFF", "\u2028 "}) {
    std::string text;
    while (text.size() < 300000) text += unit;
    const double seconds = test::cpu_seconds_of([&] {
      tokenizer->encode(text);
      tokenizer->encode_with_specials(text);
    });
    EXPECT_LT(seconds, 2.0) << testing::PrintToString(unit);
  }
}

// users.md T07, for every kind: a stream yields the whole, character by character.
TEST_P(Kinds, T07_AStreamEqualsTheWhole) {
  const TokenizerPtr tokenizer = load_fixture(GetParam()).tokenizer;
  const std::string text =
      "\U0001F468\u200D\U0001F469 \U0001F1EB\U0001F1F7 漢字, e\u0301 \U0001F642";
  std::vector<int32_t> ids = tokenizer->encode(text);
  const std::string whole = tokenizer->decode(ids);
  Utf8Stream stream;
  std::string streamed;
  for (const int32_t id : ids) {
    const std::string delta = stream.push(tokenizer->token_bytes(id).value());
    EXPECT_EQ(delta, lossy_utf8(delta));
    streamed += delta;
  }
  streamed += stream.finish();
  EXPECT_TRUE(streamed == whole || streamed == " " + whole) << streamed;  // SentencePiece's space
  ids.pop_back();
  const std::string cut = tokenizer->decode(ids);
  EXPECT_LE(std::count(cut.begin(), cut.end(), '\xEF'),
            std::count(whole.begin(), whole.end(), '\xEF') + 1);  // U+FFFD begins with EF
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Kinds,
                         testing::Values("gpt2", "llama3", "qwen2", "smollm", "digits", "deepseek",
                                         "added_flags", "llama2", "metaspace_first",
                                         "metaspace_split"),
                         [](const auto& info) { return std::string(info.param); });

// The same tokenizer as a GGUF file tells of it.
GgufVocabulary gguf_of(const bj::value& tokenizer) {
  GgufVocabulary gguf;
  const auto put = [&](size_t id, std::string_view text, int32_t type) {
    if (id >= gguf.tokens.size()) {
      gguf.tokens.resize(id + 1);
      gguf.token_types.resize(id + 1, GgufVocabulary::kUnused);
    }
    gguf.tokens[id] = text;
    gguf.token_types[id] = type;
  };
  for (const auto& [text, id] : tokenizer.at("model").at("vocab").as_object()) {
    const bool is_byte = text.starts_with("<0x");
    put(static_cast<size_t>(id.as_int64()), text,
        is_byte ? GgufVocabulary::kByte : GgufVocabulary::kNormal);
  }
  for (const bj::value& token : tokenizer.at("added_tokens").as_array()) {
    const int32_t type = token.at("content").as_string() == "<unk>" ? GgufVocabulary::kUnknown
                         : token.at("special").as_bool()            ? GgufVocabulary::kControl
                                                                    : GgufVocabulary::kUserDefined;
    put(static_cast<size_t>(token.at("id").as_int64()), token.at("content").as_string(), type);
  }
  for (const bj::value& merge : tokenizer.at("model").at("merges").as_array()) {
    gguf.merges.push_back(std::string(merge.at(0).as_string()) + " " +
                          std::string(merge.at(1).as_string()));
  }
  return gguf;
}

TEST(Gguf, TheByteLevelKindEqualsItsTokenizerJson) {
  for (const auto& [kind, pre] : {std::pair{"gpt2", "gpt-2"}, std::pair{"llama3", "llama-bpe"},
                                  std::pair{"qwen2", "qwen2"}, std::pair{"smollm", "smollm"}}) {
    const Fixture fixture = load_fixture(kind);
    GgufVocabulary gguf = gguf_of(fixture.json.at("tokenizer"));
    gguf.model = "gpt2";
    gguf.pre = pre;
    gguf.bos_id = fixture.tokenizer->bos_id();
    const TokenizerPtr tokenizer = Tokenizer::from_gguf(gguf, "file.gguf").value();
    expect_cases(fixture.json, *tokenizer);
    EXPECT_EQ(tokenizer->bos_id(), fixture.tokenizer->bos_id());
    gguf.adds_bos = false;
    EXPECT_FALSE(Tokenizer::from_gguf(gguf, "file.gguf").value()->bos_id().has_value());
  }
}

// SentencePiece's own merging goes by scores; here the score of a token is that of its merge.
TEST(Gguf, TheSentencePieceKindEqualsItsTokenizerJson) {
  const Fixture fixture = load_fixture("llama2");
  GgufVocabulary gguf = gguf_of(fixture.json.at("tokenizer"));
  gguf.model = "llama";
  gguf.bos_id = 1;
  gguf.scores.assign(gguf.tokens.size(), 0);
  std::map<std::string, size_t> id_of;
  for (size_t id = 0; id < gguf.tokens.size(); ++id) id_of[gguf.tokens[id]] = id;
  float score = 0;
  for (const bj::value& merge : fixture.json.at("tokenizer").at("model").at("merges").as_array()) {
    const std::string joined =
        std::string(merge.at(0).as_string()) + std::string(merge.at(1).as_string());
    gguf.scores[id_of.at(joined)] = --score;
  }
  const TokenizerPtr tokenizer = Tokenizer::from_gguf(gguf, "file.gguf").value();
  expect_cases(fixture.json, *tokenizer);
  EXPECT_EQ(tokenizer->bos_id(), 1);
}

TEST(Gguf, WhatIsWrongIsSaidInOneLine) {
  const bj::value json = load_fixture("gpt2").json.at("tokenizer");
  const auto expect_refused = [&](std::string_view part, auto&& change) {
    GgufVocabulary gguf = gguf_of(json);
    gguf.model = "gpt2";
    gguf.pre = "gpt-2";
    change(gguf);
    const auto loaded = Tokenizer::from_gguf(gguf, "file.gguf");
    ASSERT_FALSE(loaded.ok()) << part;
    const std::string& message = loaded.error().message;
    EXPECT_TRUE(message.starts_with("file.gguf: ")) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks " << part;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  };
  expect_refused("model is \"bert\", known: gpt2, llama", [](auto& g) { g.model = "bert"; });
  expect_refused("pre is \"dbrx\", known: gpt-2", [](auto& g) { g.pre = "dbrx"; });
  expect_refused("0 tokens", [](auto& g) { g.tokens.clear(); });
  expect_refused("3 token types", [](auto& g) { g.token_types.resize(3); });
  expect_refused("0 scores", [](auto& g) { g.model = "llama"; });
  expect_refused("token 7 is empty", [](auto& g) { g.tokens[7].clear(); });
  expect_refused("token 7 \"a b\" is not spelled", [](auto& g) { g.tokens[7] = "a b"; });
  expect_refused("has the type of a byte", [](auto& g) { g.token_types[7] = 6; });
  expect_refused("token 7 has 2000 bytes", [](auto& g) { g.tokens[7].assign(2000, 'a'); });
  expect_refused("same bytes as an earlier one", [](auto& g) { g.tokens[7] = g.tokens[8]; });
  expect_refused("no tokenizer.ggml.merges", [](auto& g) { g.merges.clear(); });
  expect_refused("merge 0 is not a pair", [](auto& g) { g.merges[0] = "ab"; });
  expect_refused("merge 1 is not two tokens", [](auto& g) { g.merges[1] = "qqq zzz"; });
  expect_refused("bos_token_id is 9999 of", [](auto& g) {
    g.bos_id = 9999;
    g.adds_bos = true;
  });
}

}  // namespace
}  // namespace briar
