#include "cli/format_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/command_test_util.h"

namespace briar {
namespace {

using command_test::Outcome;
using command_test::temp_file;

Outcome run(const std::string& input, FormatOptions options) {
  options.in = temp_file("in.jsonl");
  options.out = temp_file("out.jsonl");
  command_test::write_file(options.in, input);
  return command_test::outcome_of([&] { return run_format(options); }, options.out);
}

TEST(FormatCommand, Renders) {
  const Outcome done = run(
      R"({"name":"a","mode":"completion","conversation":{"messages":[{"role":"user","content":"Hello"}]}})"
      "\n"
      R"({"name":"b","mode":"message","message":{"role":"tool","content":"x"}})",
      {.mode = FormatOptions::Mode::kRender});
  EXPECT_EQ(done.code, 0);
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(done.out, R"({"name":"a","tokens":[200006,1428,200008,13225,200007,200006,173781],)"
                      R"("text":"<|start|>user<|message|>Hello<|end|><|start|>assistant"})"
                      "\n"
                      R"({"name":"b","error":"Tools should have a name!"})"
                      "\n");
}

TEST(FormatCommand, ParsesWithAndWithoutTheLibrarysErrors) {
  const std::string line =
      R"({"name":"a","role":"assistant","strict":true,"tokens":[40,2804,41897,200007]})";
  EXPECT_EQ(
      run(line, {.mode = FormatOptions::Mode::kParse}).out,
      R"({"name":"a","messages":[{"role":"assistant","content":"I must refuse"}],"errors":[]})"
      "\n");
  EXPECT_EQ(run(line, {.mode = FormatOptions::Mode::kParse, .strict_library = true}).out,
            R"({"name":"a","messages":[],"errors":[{"token_index":4,"error":)"
            R"("Unexpected EOS while waiting for message header to complete"}]})"
            "\n");
}

TEST(FormatCommand, ShowsTools) {
  const Outcome done = run(R"({"name":"a","tool":{"name":"f","description":"Does."}})",
                           {.mode = FormatOptions::Mode::kSchema});
  EXPECT_TRUE(done.out.starts_with(
      R"({"name":"a","declaration":"// Does.\ntype f = () => any;\n","tokens":[200006,)"))
      << done.out;
}

TEST(FormatCommand, ABadLineIsNamedAndEndsIt) {
  const std::string good = R"({"name":"a","tool":{"name":"f","description":""}})";
  for (const std::string bad : {"", "{", "[]", "{}", "{\"tool\": null}"}) {
    const Outcome done =
        run(good + "\n" + bad + "\n" + good + "\n", {.mode = FormatOptions::Mode::kSchema});
    EXPECT_EQ(done.code, 1) << bad;
    EXPECT_EQ(std::count(done.out.begin(), done.out.end(), '\n'), 1) << bad;
    EXPECT_NE(done.err.find(temp_file("in.jsonl") + ":2: "), std::string::npos) << done.err;
    EXPECT_EQ(std::count(done.err.begin(), done.err.end(), '\n'), 1) << done.err;
  }
  for (const std::string bad :
       {"{\"tokens\":[1.5]}", "{\"tokens\":[1],\"role\":\"critic\"}", "{}"}) {
    EXPECT_EQ(run(bad, {.mode = FormatOptions::Mode::kParse}).code, 1) << bad;
  }
  for (const std::string bad : {"{\"mode\":\"completion\"}", "{\"mode\":\"x\",\"message\":{}}"}) {
    EXPECT_EQ(run(bad, {.mode = FormatOptions::Mode::kRender}).code, 1) << bad;
  }
}

TEST(FormatCommand, UnknownFormatAndMissingFile) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_format({.format = "morse"}), 1);
  EXPECT_EQ(run_format({.in = "/nowhere/in.jsonl"}), 1);
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_NE(err.find("'morse'; known: harmony, chatml, llama3, mistral"), std::string::npos) << err;
  EXPECT_NE(err.find("/nowhere/in.jsonl: cannot open"), std::string::npos) << err;
}

}  // namespace
}  // namespace briar
