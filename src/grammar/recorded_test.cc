// Assistant's turns out of the recorded Harmony cases: those that a request's constraints describe
// are allowed token by token.
#include <boost/json.hpp>
#include <fstream>
#include <set>

#include "base/json.h"
#include "grammar/test_walk.h"

namespace briar {
namespace {

using grammar_test::compiler;
using grammar_test::harmony;
using grammar_test::special;
using grammar_test::tokenizer;
namespace bj = boost::json;

std::vector<int32_t> ids_of_case(const bj::object& object) {
  std::vector<int32_t> ids;
  const auto* tokens = object.if_contains("tokens");
  if (tokens == nullptr) tokens = object.if_contains("expected_tokens");
  if (tokens == nullptr) return ids;
  if (const auto* role = object.if_contains("role"); role && role->is_string()) {
    if (role->get_string() == "assistant")
      ids = tokenizer()->encode_with_specials("<|start|>assistant");
  }
  for (const auto& token : tokens->get_array()) {
    ids.push_back(static_cast<int32_t>(token.to_number<int64_t>()));
  }
  return ids;
}

bool begins_message(std::span<const int32_t> ids) {
  static const auto opening = tokenizer()->encode_with_specials("<|start|>assistant");
  return ids.size() >= opening.size() && std::equal(opening.begin(), opening.end(), ids.begin());
}

// What follows each <|start|>assistant that opens a turn, up to the message that ends it.
std::vector<std::vector<int32_t>> turns_of(const std::vector<int32_t>& ids) {
  std::vector<std::vector<int32_t>> turns;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!begins_message(std::span(ids).subspan(i))) continue;
    std::vector<int32_t> turn;
    for (i += 2; i < ids.size(); ++i) {
      turn.push_back(ids[i]);
      const bool is_stop = ids[i] == special("<|end|>") || ids[i] == special("<|return|>") ||
                           ids[i] == special("<|call|>");
      if (is_stop && !begins_message(std::span(ids).subspan(i + 1))) break;
    }
    turns.push_back(std::move(turn));
  }
  return turns;
}

// The names of the functions it calls; nullopt if no request's constraints describe the turn.
std::optional<std::set<std::string>> functions_of(std::vector<int32_t>& turn) {
  if (turn.empty()) return std::nullopt;
  const Transcript parsed = harmony()->parse(std::vector<int64_t>(turn.begin(), turn.end()),
                                             {.role = Role::kAssistant, .strict_library = true});
  if (!parsed.errors.empty() || parsed.messages.empty()) return std::nullopt;
  std::set<std::string> names;
  for (size_t i = 0; i < parsed.messages.size(); ++i) {
    const Message& message = parsed.messages[i];
    const bool is_last = i + 1 == parsed.messages.size();
    const std::string channel = message.channel.value_or("");
    const std::string type = message.content_type.value_or("json");
    if (message.role != Role::kAssistant || (type != "json" && type != "<|constrain|>json"))
      return std::nullopt;
    if (!message.recipient) {
      if (is_last ? channel != "final" : channel != "analysis" && channel != "commentary")
        return std::nullopt;
      continue;
    }
    auto arguments = json::parse(message_text(message), "arguments");
    const bool is_call = is_last && channel == "commentary" && turn.back() == special("<|call|>") &&
                         message.recipient->starts_with("functions.") && arguments.ok() &&
                         arguments->is_object();
    if (!is_call) return std::nullopt;
    names.insert(message.recipient->substr(10));
  }
  // A history closes answers with <|end|>, a model with <|return|>.
  if (names.empty() && turn.back() == special("<|end|>")) turn.back() = special("<|return|>");
  const bool is_whole = turn.back() == special(names.empty() ? "<|return|>" : "<|call|>");
  return is_whole ? std::optional(names) : std::nullopt;
}

bool is_plain(std::span<const int32_t> turn) {
  static const std::set<int32_t> structure = {
      special("<|start|>"), special("<|end|>"),    special("<|message|>"),  special("<|channel|>"),
      special("<|call|>"),  special("<|return|>"), special("<|constrain|>")};
  bool is_body = false;
  for (const int32_t id : turn) {
    if (!tokenizer()->is_special(id)) continue;
    if (structure.count(id) == 0) return false;
    const bool ends =
        id == special("<|end|>") || id == special("<|call|>") || id == special("<|return|>");
    if (is_body && !ends) return false;  // a marker in a text, or a message without its end
    is_body = id == special("<|message|>");
  }
  return true;
}

void expect_allowed(const std::vector<int32_t>& turn, const std::set<std::string>& names,
                    const std::string& where) {
  ConstraintRequest request{.tool_choice = ToolChoice::kAuto};
  for (const std::string& name : names) request.tools.push_back({.name = name});
  // Preambles belong to turns that may call something.
  request.tools.push_back({.name = "something_else"});
  auto constraint = compiler().compile(request);
  ASSERT_TRUE(constraint.ok()) << constraint.error().message;
  std::vector<uint32_t> mask((static_cast<size_t>(tokenizer()->vocab_size()) + 31) / 32);
  for (size_t i = 0; i < turn.size(); ++i) {
    (*constraint)->fill_mask(mask);
    ASSERT_TRUE(has_bit(mask, turn[i]))
        << where << " at " << harmony()->text_of(std::span(turn).first(i + 1));
    (*constraint)->accept(turn[i]);
  }
  EXPECT_TRUE((*constraint)->is_finished()) << where;
}

// Headers that the library's parser takes and Harmony does not have: white space where there is
// none, or for a content type, and a role that is said twice.
const std::set<std::string> kOddHeaders = {"content_type:''",
                                           "content_type:' '",
                                           "reparse:content_type:''",
                                           "hdr:channel_newline",
                                           "hdr:role_twice",
                                           "hdr_given_role:channel_sp:assistant",
                                           "hdr_given_role:role_word:assistant"};

TEST(RecordedHarmony, LegalTurnsAreAllowed) {
  int num_turns = 0, num_calls = 0, num_seen = 0;
  for (const char* name : {"parse.jsonl", "render.jsonl", "chat.jsonl"}) {
    const std::string path = std::string(BRIAR_ASSETS_DIR) + "/harmony/harmony/" + name;
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    for (std::string line; std::getline(file, line);) {
      auto value = json::parse(line, path);
      ASSERT_TRUE(value.ok()) << value.error().message;
      for (auto& turn : turns_of(ids_of_case(value->get_object()))) {
        ++num_seen;
        const auto names = functions_of(turn);
        const std::string case_name(value->at("name").get_string());
        const bool is_odd = kOddHeaders.count(case_name) > 0;
        if (!names || is_odd || !is_plain(turn)) continue;
        ++num_turns;
        num_calls += !names->empty();
        expect_allowed(turn, *names, case_name);
      }
    }
  }
  RecordProperty("turns", num_turns);
  EXPECT_GT(num_turns, 60) << "of " << num_seen;
  EXPECT_GT(num_calls, 15) << "of " << num_seen;
}

}  // namespace
}  // namespace briar
