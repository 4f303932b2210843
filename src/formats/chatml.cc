#include "formats/chatml.h"

#include <optional>
#include <string>
#include <utility>

#include "formats/chat_turns.h"
#include "formats/marker_parser.h"
#include "formats/prompt_builder.h"

namespace briar {
namespace {

struct Style {
  std::optional<std::string> default_system;
  bool has_tools = false;
  bool has_thinking = false;    // history and prompts as Qwen3's
  bool opens_thinking = false;  // the prompt ends in <think>
};

constexpr std::string_view kToolsHead =
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
constexpr std::string_view kToolsTail =
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>";

// The literal that the template writes as the system message, if it has one: what stands between
// <|im_start|>system, a line break (perhaps as \n) and <|im_end|> without leaving the literal.
std::optional<std::string> default_system_in(std::string_view chat_template) {
  constexpr std::string_view kOpening = "<|im_start|>system";
  for (size_t at = chat_template.find(kOpening); at != chat_template.npos;
       at = chat_template.find(kOpening, at + 1)) {
    std::string_view rest = chat_template.substr(at + kOpening.size());
    if (rest.starts_with("\\n")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with('\n')) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    const std::string_view text = rest.substr(0, rest.find("<|im_end|>"));
    if (text.size() == rest.size() || text.find_first_of("'\"{}\\") != text.npos) continue;
    return std::string(text);
  }
  return std::nullopt;
}

Style style_of(const Tokenizer& tokenizer, std::string_view chat_template) {
  const auto has = [&](std::string_view text) {
    return chat_template.empty() ? tokenizer.special_id(text).has_value()
                                 : chat_template.find(text) != chat_template.npos;
  };
  Style style;
  style.default_system = default_system_in(chat_template);
  style.has_tools = has("<tool_call>") && tokenizer.special_id("<tool_call>").has_value();
  style.has_thinking = has("<think>") && tokenizer.special_id("<think>").has_value();
  style.opens_thinking =
      style.has_thinking &&
      chat_template.find("<|im_start|>assistant\\n<think>\\n'") != chat_template.npos;
  return style;
}

class ChatmlRenderer {
 public:
  explicit ChatmlRenderer(const Style& style) : style_(style) {}

  void system(const std::optional<std::string>& text, const std::vector<ToolDefinition>& tools) {
    const std::optional<std::string>& system = text ? text : style_.default_system;
    if (!system && tools.empty()) return;
    out_.markup("<|im_start|>system\n");
    // The default is the template's own.
    text ? out_.text(*text) : out_.markup(system.value_or(""));
    if (!tools.empty()) {
      if (system) out_.markup("\n\n");
      out_.markup(kToolsHead);
      for (const ToolDefinition& tool : tools) {
        out_.markup("\n");
        out_.text(tool_as_python_json(tool));
      }
      out_.markup(kToolsTail);
    }
    out_.markup("<|im_end|>\n");
  }

  // `ends_last`: the last turn is closed, not to be gone on with.
  void turns(const std::vector<ChatTurn>& turns, bool ends_last) {
    const size_t open_begin = open_turn_begin(turns);
    for (size_t i = 0; i < turns.size(); ++i) {
      const bool is_after_tool = i > 0 && turns[i - 1].role == Role::kTool;
      const bool is_before_tool = i + 1 < turns.size() && turns[i + 1].role == Role::kTool;
      const bool is_last = i + 1 == turns.size();
      if (turns[i].role == Role::kTool && style_.has_tools) {
        tool_result(turns[i], !is_after_tool, !is_before_tool);
      } else {
        plain_turn(turns[i], i >= open_begin, is_last);
        if (!is_last || ends_last) out_.markup("<|im_end|>\n");
      }
    }
  }

  void opening(Role role, bool wants_reasoning) {
    out_.markup("<|im_start|>");
    out_.markup(role_word(role));
    out_.markup("\n");
    if (role != Role::kAssistant) return;
    if (style_.opens_thinking) {
      out_.markup("<think>\n");
    } else if (style_.has_thinking && !wants_reasoning) {
      out_.markup("<think>\n\n</think>\n\n");
    }
  }

  const PromptBuilder& result() const { return out_; }

 private:
  // Reasoning is kept behind the last question only.
  static size_t open_turn_begin(const std::vector<ChatTurn>& turns) {
    for (size_t i = turns.size(); i > 0; --i) {
      if (turns[i - 1].role == Role::kUser) return i;
    }
    return turns.size();
  }

  void plain_turn(const ChatTurn& turn, bool is_open, bool is_last) {
    out_.markup("<|im_start|>");
    out_.markup(role_word(turn.role));
    out_.markup("\n");
    if (style_.has_thinking && is_open && turn.role == Role::kAssistant &&
        (is_last || !turn.reasoning.empty())) {
      out_.markup("<think>\n");
      out_.text(stripped(turn.reasoning));
      out_.markup("\n</think>\n\n");
    }
    out_.text(turn.text);
    bool is_first = turn.text.empty();
    for (const ChatCall& call : turn.calls) {
      if (!is_first) out_.markup("\n");
      is_first = false;
      out_.markup("<tool_call>\n{\"name\": \"");
      out_.text(call.name);
      out_.markup("\", \"arguments\": ");
      out_.text(arguments_as_python_json(call.arguments));
      out_.markup("}\n</tool_call>");
    }
  }

  // The results that follow each other are one turn of the user.
  void tool_result(const ChatTurn& turn, bool is_first, bool is_last) {
    if (is_first) out_.markup("<|im_start|>user");
    out_.markup("\n<tool_response>\n");
    out_.text(turn.text);
    out_.markup("\n</tool_response>");
    if (is_last) out_.markup("<|im_end|>\n");
  }

  static std::string_view stripped(std::string_view text) {
    const size_t begin = std::min(text.find_first_not_of('\n'), text.size());
    const size_t end = text.find_last_not_of('\n') + 1;
    return begin < end ? text.substr(begin, end - begin) : std::string_view();
  }

  const Style& style_;
  PromptBuilder out_;
};

class Chatml final : public Format {
 public:
  Chatml(std::shared_ptr<const Tokenizer> tokenizer, Style style, MarkerRules rules)
      : tokenizer_(std::move(tokenizer)), style_(std::move(style)), rules_(std::move(rules)) {}

  std::string_view name() const override { return "chatml"; }

  Result<std::vector<int32_t>> render_prompt(const PromptRequest& request) const override {
    const auto chat = chat_request(request, style_.has_tools);
    if (!chat) return chat.error();
    ChatmlRenderer renderer(style_);
    renderer.system(chat->system, request.tools);
    renderer.turns(chat->turns, !request.continues_last);
    if (!request.continues_last) renderer.opening(Role::kAssistant, request.wants_reasoning);
    return renderer.result().encode(*tokenizer_);
  }

  Result<std::vector<int32_t>> render(std::span<const Message> messages,
                                      const RenderOptions& options) const override {
    ChatmlRenderer renderer(style_);
    renderer.turns(chat_turns(messages), true);
    if (options.mode == RenderMode::kCompletion) renderer.opening(options.next_role, true);
    return renderer.result().encode(*tokenizer_);
  }

  Result<ToolRendering> render_tool(const ToolDefinition& tool, bool) const override {
    if (auto status = check_tool_name(tool.name); !status) return status.error();
    std::string declaration = tool_as_python_json(tool);
    return ToolRendering{.declaration = declaration, .tokens = tokenizer_->encode(declaration)};
  }

  std::unique_ptr<StreamParser> make_parser(ParserOptions options) const override {
    return std::make_unique<MarkerParser>(tokenizer_, rules_, std::move(options));
  }

  Transcript parse(std::span<const int64_t> ids, const TranscriptOptions& options) const override {
    return parse_with_markers(tokenizer_, rules_, ids, options);
  }

  std::vector<int32_t> stop_ids() const override { return rules_.stop_ids; }

  // No channels: once </think> is there, <think> must not come again at once.
  std::optional<ReasoningGate> reasoning_gate() const override {
    if (!style_.has_thinking) return std::nullopt;
    return ReasoningGate{.end_id = rules_.think_end,
                         .channel_id = rules_.think_end,
                         .reasoning_id = rules_.think_begin};
  }

  std::string text_of(std::span<const int32_t> ids) const override {
    return tokenizer_->decode(ids);
  }

 private:
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const Style style_;
  const MarkerRules rules_;
};

}  // namespace

Result<std::shared_ptr<const Format>> make_chatml(std::shared_ptr<const Tokenizer> tokenizer,
                                                  std::string_view chat_template) {
  CHECK(tokenizer != nullptr, "a format needs a tokenizer");
  const auto id = [&](std::string_view text) { return tokenizer->special_id(text).value_or(-1); };
  MarkerRules rules;
  rules.header_begin = id("<|im_start|>");
  const int32_t end = id("<|im_end|>");
  if (rules.header_begin < 0 || end < 0) {
    return make_error("the tokenizer lacks ChatML's special tokens <|im_start|> and <|im_end|>");
  }
  rules.stop_ids = {end};
  if (id("<|endoftext|>") >= 0) rules.stop_ids.push_back(id("<|endoftext|>"));
  Style style = style_of(*tokenizer, chat_template);
  if (style.has_tools) {
    rules.call_begin = id("<tool_call>");
    rules.call_end = id("</tool_call>");
  }
  if (style.has_thinking) {
    rules.think_begin = id("<think>");
    rules.think_end = id("</think>");
    rules.begins_in_reasoning = style.opens_thinking;
  }
  return std::shared_ptr<const Format>(
      std::make_shared<Chatml>(std::move(tokenizer), std::move(style), std::move(rules)));
}

}  // namespace briar
