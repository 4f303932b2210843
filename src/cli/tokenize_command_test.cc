#include "cli/tokenize_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "cli/command_test_util.h"

namespace briar {
namespace {

using command_test::Outcome;
using command_test::temp_file;

Outcome tokenize(const std::string& input, TokenizeOptions options, bool bench = false) {
  const std::string path = temp_file("in.jsonl");
  command_test::write_file(path, input);
  (bench ? options.bench_file : options.jsonl) = path;
  options.out = temp_file("out.jsonl");
  return command_test::outcome_of([&] { return run_tokenize(options); }, options.out);
}

TEST(TokenizeCommand, EncodesAndDecodesLineByLine) {
  const Outcome done = tokenize(
      "{\"text\": \"a<|end|>\"}\n{\"ids\": [64, 200007]}\r\n{\"ids\": [169], \"name\": "
      "\"x\"}\n{\"text\":\"\"}",
      {});
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.out,
            "{\"ids\":[64,27,91,419,91,29]}\n"
            "{\"text\":\"a<|end|>\",\"bytes_hex\":\"613c7c656e647c3e\"}\n"
            "{\"text\":\"\uFFFD\",\"bytes_hex\":\"ed\"}\n"
            "{\"ids\":[]}\n");
}

TEST(TokenizeCommand, SpecialsOnlyOnRequest) {
  EXPECT_EQ(tokenize("{\"text\": \"a<|end|>\"}\n", {.specials = true}).out,
            "{\"ids\":[64,200007]}\n");
}

TEST(TokenizeCommand, TakesATokenizerDirectory) {
  const std::string directory = BRIAR_ASSETS_DIR "/tokenizer";
  // tokenizer.json knows fewer special tokens than the bundled definition.
  const std::string line = "{\"text\": \"<|reserved_201087|>\"}\n";
  EXPECT_EQ(tokenize(line, {.tokenizer = directory, .specials = true}).out,
            "{\"ids\":[27,91,116758,62,667,47425,91,29]}\n");
  EXPECT_EQ(tokenize(line, {.specials = true}).out, "{\"ids\":[201087]}\n");
  const Outcome missing = tokenize(line, {.tokenizer = "/nowhere"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("/nowhere"), std::string::npos) << missing.err;
}

TEST(TokenizeCommand, ABadLineIsNamedAndEndsIt) {
  for (const std::string bad :
       {"", "{", "[]", "{}", "{\"text\": 1}", "{\"ids\": 1}", "{\"ids\": [\"a\"]}",
        "{\"ids\": [4294967296]}", "{\"ids\": [-1]}", "{\"ids\": [201088]}",
        "{\"text\": \"a\", \"ids\": []}", "{\"text\": \"\xFF\"}"}) {
    const Outcome done = tokenize("{\"text\": \"a\"}\n" + bad + "\n{\"text\": \"b\"}\n", {});
    EXPECT_EQ(done.code, 1) << bad;
    EXPECT_EQ(done.out, "{\"ids\":[64]}\n") << bad;
    EXPECT_NE(done.err.find(temp_file("in.jsonl") + ":2: "), std::string::npos) << done.err;
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
  }
}

TEST(TokenizeCommand, BenchEndsWithTheSpeed) {
  const Outcome done = tokenize("Some text to encode.\n", {}, true);
  EXPECT_EQ(done.code, 0);
  double speed = 0;
  const size_t last_line = done.out.rfind('\n', done.out.size() - 2) + 1;
  ASSERT_EQ(std::sscanf(done.out.c_str() + last_line, "encode %lf MB/s\n", &speed), 1) << done.out;
  EXPECT_GT(speed, 0.0);
  EXPECT_EQ(tokenize("", {}, true).code, 1);
}

TEST(TokenizeCommand, WrongUsageAndMissingFiles) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_tokenize({}), 2);
  EXPECT_EQ(run_tokenize({.jsonl = "a", .bench_file = "b"}), 2);
  EXPECT_EQ(run_tokenize({.jsonl = "/nowhere/in.jsonl"}), 1);
  EXPECT_EQ(run_tokenize({.jsonl = "/dev/null", .out = "/nowhere/out"}), 1);
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_NE(err.find("/nowhere/in.jsonl: cannot open"), std::string::npos) << err;
  EXPECT_NE(err.find("/nowhere/out: cannot open for writing"), std::string::npos) << err;
}

}  // namespace
}  // namespace briar
