// Prompts and ids of a real model, from its GGUF file: assets/golden/smollm2.
#include "cli/chat_model.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <map>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "cli/text_io.h"

namespace briar {
namespace {

namespace bj = boost::json;

constexpr const char* kModel = BRIAR_ASSETS_DIR "/models/smollm2-135m-instruct.gguf";
constexpr const char* kFolder = BRIAR_ASSETS_DIR "/golden/smollm2/";

class Smollm2 : public testing::Test {
 protected:
  void SetUp() override {
    if (file_exists(kModel)) return;
    ASSERT_EQ(std::getenv("CI"), nullptr) << kModel << " is missing";
    GTEST_SKIP() << "no " << kModel << "; run scripts/fetch_smollm2.sh";
  }

  std::vector<bj::value> read(const std::string& name) const {
    std::vector<bj::value> lines;
    TextInput input(kFolder + name);
    for (std::string line; input.next_line(line);) {
      lines.push_back(json::parse(line, name).value());
    }
    return lines;
  }
};

std::vector<int32_t> ids_of(const bj::value& list) {
  return bj::value_to<std::vector<int32_t>>(list);
}

TEST_F(Smollm2, TokenizerEqualsTheReferences) {
  const auto tokenizer = load_tokenizer(kModel);
  EXPECT_EQ(tokenizer->vocab_size(), 49152);
  EXPECT_FALSE(tokenizer->bos_id().has_value());
  int num_cases = 0;
  for (const bj::value& line : read("tokenizer.jsonl")) {
    const std::string text(line.at("text").as_string());
    EXPECT_EQ(tokenizer->encode_with_specials(text), ids_of(line.at("ids"))) << text;
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 20);
}

TEST_F(Smollm2, PromptsEqualTheTemplate) {
  const ChatModel model = load_chat_model(kModel);
  EXPECT_EQ(model.format->name(), "chatml");
  EXPECT_EQ(model.stop_ids, (std::vector<int32_t>{2, 0}));
  std::map<std::string, bj::value> cases;
  for (const bj::value& line : read("smollm2-135m.jsonl")) {
    cases.emplace(line.at("name").as_string(), line);
  }
  int num_cases = 0;
  for (const bj::value& line : read("messages.jsonl")) {
    PromptRequest request;
    for (const bj::value& message : line.at("messages").as_array()) {
      const std::string text(message.at("content").as_string());
      const Role role = *role_from_word(message.at("role").as_string());
      request.messages.push_back(role == Role::kAssistant ? answer_message(text)
                                                          : text_message(role, text));
    }
    const bj::value& expected = cases.at(std::string(line.at("name").as_string()));
    const std::vector<int32_t> ids = model.format->render_prompt(request).value();
    EXPECT_EQ(model.format->text_of(ids), std::string_view(expected.at("text").as_string()));
    EXPECT_EQ(ids, ids_of(expected.at("prompt"))) << line.at("name");
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 24);
}

}  // namespace
}  // namespace briar
