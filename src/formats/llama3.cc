#include "formats/llama3.h"

#include <optional>
#include <string>
#include <utility>

#include "formats/chat_turns.h"
#include "formats/harmony_text.h"
#include "formats/json_text.h"
#include "formats/marker_parser.h"
#include "formats/prompt_builder.h"

namespace briar {
namespace {

constexpr std::string_view kToolsHead =
    "Given the following functions, please respond with a JSON for a function call with its proper "
    "arguments that best answers the given prompt.\n\n"
    "Respond in the format {\"name\": function name, \"parameters\": dictionary of argument name "
    "and "
    "its value}.Do not use variables.\n\n";

// "2024-07-26" as "26 Jul 2024"; other texts as they are.
std::string written_date(const std::string& date) {
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (date.size() != 10 || date[4] != '-' || date[7] != '-') return date;
  const int month = 10 * (date[5] - '0') + (date[6] - '0');
  if (month < 1 || month > 12) return date;
  return date.substr(8) + " " + kMonths[month - 1] + " " + date.substr(0, 4);
}

class Llama3Renderer {
 public:
  void text(std::string_view text) { out_.text(text); }
  void markup(std::string_view text) { out_.markup(text); }

  void header(std::string_view role) {
    out_.markup("<|start_header_id|>");
    out_.markup(role);
    out_.markup("<|end_header_id|>\n\n");
  }

  // As the templates of 3.1 and later: always there.
  void system(const ChatRequest& chat, const PromptRequest& request) {
    header("system");
    if (!request.tools.empty()) out_.markup("Environment: ipython\n");
    out_.markup("Cutting Knowledge Date: December 2023\n");
    if (request.date) {
      out_.markup("Today Date: ");
      out_.text(written_date(*request.date));
      out_.markup("\n");
    }
    out_.markup("\n");
    out_.text(trim_white_space(chat.system.value_or("")));
    out_.markup("<|eot_id|>");
  }

  // Tools are declared in the first question.
  void question_with_tools(const std::vector<ToolDefinition>& tools, const ChatTurn& turn) {
    header("user");
    out_.markup(kToolsHead);
    for (const ToolDefinition& tool : tools) {
      out_.text(tool_as_python_json(tool, 4));
      out_.markup("\n\n");
    }
    out_.text(trim_white_space(turn.text));
    out_.markup("<|eot_id|>");
  }

  void turn(const ChatTurn& turn) {
    if (turn.role == Role::kTool) {
      header("ipython");
      out_.text(json_quote(turn.text));  // the template writes even a text as JSON
      out_.markup("<|eot_id|>");
      return;
    }
    // The template has one call in a message and no text beside it.
    for (const ChatCall& call : turn.calls) {
      header("assistant");
      out_.markup("{\"name\": \"");
      out_.text(call.name);
      out_.markup("\", \"parameters\": ");
      out_.text(arguments_as_python_json(call.arguments));
      out_.markup("}<|eot_id|>");
    }
    if (!turn.calls.empty()) return;
    open_turn(turn);
    out_.markup("<|eot_id|>");
  }

  // A turn to be gone on with.
  void open_turn(const ChatTurn& turn) {
    header(role_word(turn.role));
    out_.text(trim_white_space(turn.text));
  }

  const PromptBuilder& result() const { return out_; }

 private:
  PromptBuilder out_;
};

class Llama3 final : public Format {
 public:
  Llama3(std::shared_ptr<const Tokenizer> tokenizer, bool is_3_1, MarkerRules rules)
      : tokenizer_(std::move(tokenizer)), is_3_1_(is_3_1), rules_(std::move(rules)) {}

  std::string_view name() const override { return "llama3"; }

  Result<std::vector<int32_t>> render_prompt(const PromptRequest& request) const override {
    const auto chat = chat_request(request, is_3_1_);
    if (!chat) return chat.error();
    Llama3Renderer out;
    out.markup("<|begin_of_text|>");
    if (is_3_1_) {
      out.system(*chat, request);
    } else if (chat->system) {
      out.turn({.role = Role::kSystem,
                .text = *chat->system,
                .reasoning = {},
                .calls = {},
                .tool_name = {}});
    }
    size_t begin = 0;
    if (!request.tools.empty()) {
      if (chat->turns.empty() || chat->turns[0].role != Role::kUser) {
        return make_error(
            "the llama3 format declares tools in the first user message, and the "
            "conversation does not begin with one");
      }
      out.question_with_tools(request.tools, chat->turns[begin++]);
    }
    const size_t end = chat->turns.size() - (request.continues_last ? 1 : 0);
    for (size_t i = begin; i < end; ++i) out.turn(chat->turns[i]);
    request.continues_last ? out.open_turn(chat->turns[end]) : out.header("assistant");
    return out.result().encode(*tokenizer_);
  }

  Result<std::vector<int32_t>> render(std::span<const Message> messages,
                                      const RenderOptions& options) const override {
    Llama3Renderer out;
    for (const ChatTurn& turn : chat_turns(messages)) out.turn(turn);
    if (options.mode == RenderMode::kCompletion) {
      out.header(options.next_role == Role::kTool ? "ipython" : role_word(options.next_role));
    }
    return out.result().encode(*tokenizer_);
  }

  Result<ToolRendering> render_tool(const ToolDefinition& tool, bool) const override {
    if (auto status = check_tool_name(tool.name); !status) return status.error();
    std::string declaration = tool_as_python_json(tool, 4);
    return ToolRendering{.declaration = declaration, .tokens = tokenizer_->encode(declaration)};
  }

  std::unique_ptr<StreamParser> make_parser(ParserOptions options) const override {
    return std::make_unique<MarkerParser>(tokenizer_, rules_, std::move(options));
  }

  Transcript parse(std::span<const int64_t> ids, const TranscriptOptions& options) const override {
    return parse_with_markers(tokenizer_, rules_, ids, options);
  }

  std::vector<int32_t> stop_ids() const override { return rules_.stop_ids; }

  std::optional<ReasoningGate> reasoning_gate() const override { return std::nullopt; }

  std::string text_of(std::span<const int32_t> ids) const override {
    return tokenizer_->decode(ids);
  }

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const bool is_3_1_;
  const MarkerRules rules_;
};

}  // namespace

Result<std::shared_ptr<const Format>> make_llama3(std::shared_ptr<const Tokenizer> tokenizer,
                                                  std::string_view chat_template) {
  CHECK(tokenizer != nullptr, "a format needs a tokenizer");
  const auto id = [&](std::string_view text) { return tokenizer->special_id(text).value_or(-1); };
  MarkerRules rules;
  rules.header_begin = id("<|start_header_id|>");
  rules.header_end = id("<|end_header_id|>");
  if (id("<|begin_of_text|>") < 0 || rules.header_begin < 0 || rules.header_end < 0 ||
      id("<|eot_id|>") < 0) {
    return make_error(
        "the tokenizer lacks Llama 3's special tokens <|begin_of_text|>, <|start_header_id|>, "
        "<|end_header_id|> and <|eot_id|>");
  }
  for (const char* stop : {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"}) {
    if (id(stop) >= 0) rules.stop_ids.push_back(id(stop));
  }
  const bool is_3_1 = chat_template.empty()
                          ? id("<|eom_id|>") >= 0
                          : chat_template.find("Cutting Knowledge Date") != chat_template.npos;
  if (is_3_1) {
    rules.call_begin = id("<|python_tag|>");
    rules.has_bare_calls = true;
  }
  return std::shared_ptr<const Format>(
      std::make_shared<Llama3>(std::move(tokenizer), is_3_1, std::move(rules)));
}

}  // namespace briar
