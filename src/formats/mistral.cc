#include "formats/mistral.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "formats/chat_turns.h"
#include "formats/harmony_text.h"
#include "formats/marker_parser.h"
#include "formats/prompt_builder.h"

namespace briar {
namespace {

struct Style {
  bool has_tools = false;
  bool has_system_prompt = false;   // v7: the system message stands in markers of its own
  bool spaces_after_marker = true;  // "[INST] text"; Tekken's versions have none
  // Llama 2: <s> before every question, <<SYS>> in the first one, a space before </s>.
  bool is_llama2 = false;
  bool spaces_before_end = false;  // v1: "text [/INST]"
};

// The ids of calls, which Mistral wants and histories here do not have: 9 letters and digits.
std::string call_id(size_t call_idx) { return fmt::format("call{:05}", call_idx % 100000); }

class MistralRenderer {
 public:
  explicit MistralRenderer(const Style& style) : style_(style) {}

  void markup(std::string_view text) { out_.markup(text); }

  void system_prompt(std::string_view text) {
    out_.markup("[SYSTEM_PROMPT]");
    space();
    out_.text(text);
    out_.markup("[/SYSTEM_PROMPT]");
  }

  void tools(const std::vector<ToolDefinition>& tools) {
    out_.markup("[AVAILABLE_TOOLS]");
    space();
    out_.markup("[");
    for (size_t i = 0; i < tools.size(); ++i) {
      if (i > 0) out_.markup(", ");
      out_.text(tool_as_python_json(tools[i]));
    }
    out_.markup("][/AVAILABLE_TOOLS]");
  }

  void question(std::string_view text, const std::optional<std::string>& system) {
    out_.markup(style_.is_llama2 ? "<s>[INST]" : "[INST]");
    space();
    if (system) {
      if (style_.is_llama2) out_.markup("<<SYS>>\n");
      out_.text(*system);
      out_.markup(style_.is_llama2 ? "\n<</SYS>>\n\n" : "\n\n");
    }
    out_.text(style_.is_llama2 ? trim_white_space(text) : text);
    out_.markup(style_.spaces_before_end ? " [/INST]" : "[/INST]");
  }

  // An answer to be gone on with.
  void open_answer(const ChatTurn& turn) {
    space();
    out_.text(trim_white_space(turn.text));
  }

  void answer(const ChatTurn& turn) {
    turn.calls.empty() ? open_answer(turn) : calls(turn.calls);
    out_.markup(style_.is_llama2 ? " </s>" : "</s>");
  }

  // A result belongs to the first call of that tool which has none yet.
  void result(const ChatTurn& turn) {
    const auto call =
        std::find_if(open_calls_.begin(), open_calls_.end(),
                     [&](const OpenCall& open) { return open.name == turn.tool_name; });
    const size_t call_idx = call != open_calls_.end() ? call->idx : num_calls_;
    if (call != open_calls_.end()) open_calls_.erase(call);
    out_.markup("[TOOL_RESULTS]");
    space();
    out_.markup("{\"content\": ");
    out_.text(turn.text);
    out_.markup(", \"call_id\": \"" + call_id(call_idx) + "\"}[/TOOL_RESULTS]");
  }

  void turn(const ChatTurn& turn, const std::optional<std::string>& system) {
    switch (turn.role) {
      case Role::kAssistant: return answer(turn);
      case Role::kTool: return result(turn);
      default: return question(turn.text, system);
    }
  }

  const PromptBuilder& result() const { return out_; }

 private:
  struct OpenCall {
    std::string name;
    size_t idx;
  };

  void space() {
    if (style_.spaces_after_marker) out_.markup(" ");
  }

  void calls(const std::vector<ChatCall>& calls) {
    out_.markup("[TOOL_CALLS]");
    space();
    out_.markup("[");
    for (size_t i = 0; i < calls.size(); ++i) {
      if (i > 0) out_.markup(", ");
      out_.markup("{\"name\": \"");
      out_.text(calls[i].name);
      out_.markup("\", \"arguments\": ");
      out_.text(arguments_as_python_json(calls[i].arguments));
      out_.markup(", \"id\": \"" + call_id(num_calls_) + "\"}");
      open_calls_.push_back({.name = calls[i].name, .idx = num_calls_++});
    }
    out_.markup("]");
  }

  const Style& style_;
  PromptBuilder out_;
  size_t num_calls_ = 0;
  std::vector<OpenCall> open_calls_;  // that have no result yet
};

class Mistral final : public Format {
 public:
  Mistral(std::shared_ptr<const Tokenizer> tokenizer, Style style, MarkerRules rules)
      : tokenizer_(std::move(tokenizer)), style_(style), rules_(std::move(rules)) {}

  std::string_view name() const override { return "mistral"; }

  Result<std::vector<int32_t>> render_prompt(const PromptRequest& request) const override {
    const auto chat = chat_request(request, style_.has_tools);
    if (!chat) return chat.error();
    MistralRenderer out(style_);
    if (!style_.is_llama2) out.markup("<s>");
    if (style_.has_system_prompt && chat->system) out.system_prompt(*chat->system);
    // Tools and, without a place of its own, the system message go with the last question; Llama 2
    // has the system message in the first.
    size_t first_question = chat->turns.size();
    size_t last_question = chat->turns.size();
    for (size_t i = 0; i < chat->turns.size(); ++i) {
      if (chat->turns[i].role != Role::kUser) continue;
      first_question = std::min(first_question, i);
      last_question = i;
    }
    const size_t system_question = style_.has_system_prompt ? chat->turns.size()
                                   : style_.is_llama2       ? first_question
                                                            : last_question;
    const size_t end = chat->turns.size() - (request.continues_last ? 1 : 0);
    for (size_t i = 0; i < end; ++i) {
      if (i == last_question && !request.tools.empty()) out.tools(request.tools);
      out.turn(chat->turns[i], i == system_question ? chat->system : std::nullopt);
    }
    if (request.continues_last) out.open_answer(chat->turns[end]);
    return out.result().encode(*tokenizer_);
  }

  // An answer has no opening: what follows [/INST] is the answer.
  Result<std::vector<int32_t>> render(std::span<const Message> messages,
                                      const RenderOptions&) const override {
    MistralRenderer out(style_);
    for (const ChatTurn& turn : chat_turns(messages)) out.turn(turn, std::nullopt);
    return out.result().encode(*tokenizer_);
  }

  Result<ToolRendering> render_tool(const ToolDefinition& tool, bool) const override {
    if (auto status = check_tool_name(tool.name); !status) return status.error();
    MistralRenderer out(style_);
    out.tools({tool});
    return ToolRendering{.declaration = tool_as_python_json(tool),
                         .tokens = out.result().encode(*tokenizer_)};
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
  const Style style_;
  const MarkerRules rules_;
};

}  // namespace

Result<std::shared_ptr<const Format>> make_mistral(std::shared_ptr<const Tokenizer> tokenizer,
                                                   std::string_view chat_template) {
  CHECK(tokenizer != nullptr, "a format needs a tokenizer");
  const auto id = [&](std::string_view text) { return tokenizer->special_id(text).value_or(-1); };
  if (id("<s>") < 0 || id("</s>") < 0) {
    return make_error("the tokenizer lacks Mistral's special tokens <s> and </s>");
  }
  const auto has = [&](std::string_view text) {
    return chat_template.empty() ? id(text) >= 0 : chat_template.find(text) != chat_template.npos;
  };
  Style style;
  // Newer versions write a call as name[ARGS]{...}, which is not read here.
  style.has_tools = has("[AVAILABLE_TOOLS]") && id("[TOOL_CALLS]") >= 0 && !has("[ARGS]");
  style.has_system_prompt = has("[SYSTEM_PROMPT]") && id("[SYSTEM_PROMPT]") >= 0;
  style.spaces_after_marker = chat_template.empty()
                                  ? !style.has_system_prompt
                                  : chat_template.find("[INST] ") != chat_template.npos;
  style.spaces_before_end = chat_template.empty()
                                ? id("[INST]") < 0
                                : chat_template.find(" [/INST]") != chat_template.npos;
  style.is_llama2 = chat_template.find("<<SYS>>") != chat_template.npos;
  MarkerRules rules;
  rules.stop_ids = {id("</s>")};
  rules.user_begin = id("[INST]");
  rules.user_end = id("[/INST]");
  rules.drops_first_space = true;
  if (style.has_tools) rules.call_begin = id("[TOOL_CALLS]");
  return std::shared_ptr<const Format>(
      std::make_shared<Mistral>(std::move(tokenizer), style, std::move(rules)));
}

}  // namespace briar
