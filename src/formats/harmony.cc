#include "formats/harmony.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "formats/harmony_library_parser.h"
#include "formats/harmony_parser.h"
#include "formats/harmony_render.h"
#include "formats/harmony_schema.h"
#include "formats/harmony_tokens.h"

namespace briar {
namespace {

// What gpt-oss is told about itself in training.
constexpr std::string_view kModelIdentity =
    "You are ChatGPT, a large language model trained by OpenAI.";
constexpr std::string_view kKnowledgeCutoff = "2024-06";

SystemContent system_content(const PromptRequest& request) {
  SystemContent content;
  content.model_identity = std::string(kModelIdentity);
  content.knowledge_cutoff = std::string(kKnowledgeCutoff);
  content.conversation_start_date = request.date;
  content.reasoning_effort = request.reasoning_effort;
  content.channel_config = ChannelConfig{.valid_channels = {"analysis", "commentary", "final"},
                                         .channel_required = true};
  return content;
}

void append_section(std::optional<std::string>& text, std::string_view section) {
  if (!text) {
    text = std::string(section);
  } else {
    *text += "\n\n" + std::string(section);
  }
}

bool is_instruction(const Message& message) {
  return (message.role == Role::kSystem || message.role == Role::kDeveloper) &&
         std::all_of(message.content.begin(), message.content.end(), [](const ContentPart& part) {
           return std::holds_alternative<TextContent>(part);
         });
}

std::string response_format_text(const std::vector<ResponseFormat>& formats) {
  std::string out = "# Response Formats";
  for (const ResponseFormat& format : formats) {
    out += "\n\n## " + format.name + "\n\n";
    for (std::string_view line : split_lines(format.description)) {
      out += "// " + std::string(line) + "\n";
    }
    out += format.schema_json;
  }
  return out;
}

Message structured_message(Role role, ContentPart content) {
  Message message;
  message.role = role;
  message.content.push_back(std::move(content));
  return message;
}

// The whole conversation with its system and developer messages in Harmony's own terms.
Result<std::vector<Message>> harmony_messages(const PromptRequest& request) {
  DeveloperContent developer;
  developer.instructions = request.instructions;
  size_t num_leading = 0;
  while (num_leading < request.messages.size() && is_instruction(request.messages[num_leading])) {
    append_section(developer.instructions, message_text(request.messages[num_leading++]));
  }
  if (!request.response_formats.empty()) {
    append_section(developer.instructions, response_format_text(request.response_formats));
  }
  for (const ToolDefinition& tool : request.tools) {
    if (auto status = check_tool_name(tool.name); !status) return status.error();
  }
  if (!request.tools.empty()) {
    developer.tools["functions"] = {.name = "functions", .description = {}, .tools = request.tools};
  }
  std::vector<Message> messages;
  messages.push_back(structured_message(Role::kSystem, system_content(request)));
  if (developer.instructions || !developer.tools.empty()) {
    messages.push_back(structured_message(Role::kDeveloper, std::move(developer)));
  }
  for (size_t i = num_leading; i < request.messages.size(); ++i) {
    const Message& message = request.messages[i];
    if (!is_instruction(message)) {
      messages.push_back(message);
      continue;
    }
    DeveloperContent later{.instructions = message_text(message), .tools = {}};
    messages.push_back(structured_message(Role::kDeveloper, std::move(later)));
  }
  return messages;
}

class Harmony final : public Format {
 public:
  Harmony(std::shared_ptr<const Tokenizer> tokenizer, HarmonyTokens tokens)
      : tokenizer_(std::move(tokenizer)), tokens_(tokens) {}

  std::string_view name() const override { return "harmony"; }

  Result<std::vector<int32_t>> render_prompt(const PromptRequest& request) const override {
    auto messages = harmony_messages(request);
    if (!messages) return messages.error();
    if (!request.continues_last) return render(*messages, RenderOptions{});
    const Message& last = messages->back();
    if (last.role != Role::kAssistant || last.recipient) {
      return make_error("the last message is not an answer that could be continued");
    }
    RenderOptions options;
    options.mode = RenderMode::kConversation;
    auto ids = render(*messages, options);
    if (ids) ids->pop_back();  // its <|end|>
    return ids;
  }

  Result<std::vector<int32_t>> render(std::span<const Message> messages,
                                      const RenderOptions& options) const override {
    return render_harmony({*tokenizer_, tokens_}, messages, options);
  }

  Result<ToolRendering> render_tool(const ToolDefinition& tool,
                                    bool strict_library) const override {
    DeveloperContent content;
    content.tools["functions"] = {.name = "functions", .description = {}, .tools = {tool}};
    const Message message = structured_message(Role::kDeveloper, std::move(content));
    RenderOptions options;
    options.mode = RenderMode::kMessage;
    options.strict_library = strict_library;
    auto tokens = render({&message, 1}, options);
    if (!tokens) return tokens.error();
    return ToolRendering{.declaration = harmony_tool_declaration(tool, strict_library) + "\n",
                         .tokens = std::move(*tokens)};
  }

  std::unique_ptr<StreamParser> make_parser(ParserOptions options) const override {
    return std::make_unique<HarmonyParser>(tokenizer_, tokens_, std::move(options));
  }

  Transcript parse(std::span<const int64_t> ids, const TranscriptOptions& options) const override {
    return options.strict_library ? parse_like_library(ids, options)
                                  : parse_tolerantly(ids, options);
  }

  // Not <|end|>: after reasoning or a preamble the model goes on with its next message.
  std::vector<int32_t> stop_ids() const override { return {tokens_.return_, tokens_.call}; }

  std::optional<ReasoningGate> reasoning_gate() const override {
    return ReasoningGate{.end_id = tokens_.end,
                         .channel_id = tokens_.channel,
                         .reasoning_id = tokenizer_->encode("analysis").front()};
  }

  std::string text_of(std::span<const int32_t> ids) const override {
    return tokenizer_->decode(ids);
  }

 private:
  Transcript parse_like_library(std::span<const int64_t> ids,
                                const TranscriptOptions& options) const {
    HarmonyLibraryParser parser(*tokenizer_, tokens_, options.role, options.is_strict_grammar);
    Transcript transcript;
    bool has_failed = false;
    const auto note = [&](const Status& status, size_t idx) {
      if (status) return;
      transcript.errors.push_back({.token_idx = idx, .message = status.error().message});
      has_failed = !options.continue_on_error;
    };
    for (size_t i = 0; i < ids.size() && !has_failed; ++i) note(parser.push(ids[i]), i);
    if (options.has_end && !has_failed) note(parser.finish(), ids.size());
    transcript.messages = parser.messages();
    return transcript;
  }

  Transcript parse_tolerantly(std::span<const int64_t> ids,
                              const TranscriptOptions& options) const {
    HarmonyParser parser(tokenizer_, tokens_,
                         ParserOptions{.role = options.role, .tool_names = {}});
    std::vector<Delta> deltas;
    for (const int64_t id : ids) {
      const bool fits = id >= 0 && id <= std::numeric_limits<int32_t>::max();
      parser.push(fits ? static_cast<int32_t>(id) : -1, deltas);
    }
    if (options.has_end) parser.finish(deltas);
    Transcript transcript;
    for (const ParsedMessage& parsed : parser.messages()) {
      transcript.messages.push_back(parsed.message);
    }
    return transcript;
  }

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const HarmonyTokens tokens_;
};

}  // namespace

Result<HarmonyTokens> HarmonyTokens::find(const Tokenizer& tokenizer) {
  HarmonyTokens tokens;
  const std::array<std::pair<std::string_view, int32_t*>, 7> spellings = {{
      {kHarmonyStartText, &tokens.start},
      {"<|end|>", &tokens.end},
      {"<|message|>", &tokens.message},
      {kHarmonyChannelText, &tokens.channel},
      {kHarmonyConstrainText, &tokens.constrain},
      {"<|return|>", &tokens.return_},
      {"<|call|>", &tokens.call},
  }};
  for (const auto& [spelling, target] : spellings) {
    const std::optional<int32_t> id = tokenizer.special_id(spelling);
    if (!id) return make_error("the tokenizer lacks Harmony's special token {}", spelling);
    *target = *id;
  }
  tokens.end_of_text = tokenizer.special_id("<|endoftext|>").value_or(-1);
  return tokens;
}

Result<std::shared_ptr<const Format>> make_harmony(std::shared_ptr<const Tokenizer> tokenizer,
                                                   std::string_view /*chat_template*/) {
  CHECK(tokenizer != nullptr, "a format needs a tokenizer");
  auto tokens = HarmonyTokens::find(*tokenizer);
  if (!tokens) return tokens.error();
  return std::shared_ptr<const Format>(std::make_shared<Harmony>(std::move(tokenizer), *tokens));
}

}  // namespace briar
