#include "formats/harmony_render.h"

#include <algorithm>
#include <utility>

#include "formats/harmony_schema.h"

namespace briar {
namespace {

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

std::string_view effort_word(ReasoningEffort effort) {
  switch (effort) {
    case ReasoningEffort::kLow: return "low";
    case ReasoningEffort::kMedium: return "medium";
    case ReasoningEffort::kHigh: return "high";
  }
  CHECK(false, "reasoning effort {} has no word", static_cast<int>(effort));
  return {};
}

std::string_view role_title(Role role) {
  constexpr std::string_view kTitles[] = {"User", "Assistant", "System", "Developer", "Tool"};
  return kTitles[static_cast<int>(role)];
}

bool declares_functions(const Message& message) {
  return std::any_of(message.content.begin(), message.content.end(), [](const ContentPart& part) {
    const auto* content = std::get_if<DeveloperContent>(&part);
    if (content == nullptr) return false;
    const auto functions = content->tools.find("functions");
    return functions != content->tools.end() && !functions->second.tools.empty();
  });
}

class Renderer {
 public:
  Renderer(const HarmonyRenderContext& context, const RenderOptions& options)
      : context_(context), options_(options) {}

  Result<std::vector<int32_t>> run(std::span<const Message> messages) {
    has_function_tools_ = options_.mode == RenderMode::kMessage
                              ? options_.has_function_tools
                              : std::any_of(messages.begin(), messages.end(), declares_functions);
    const std::vector<bool> is_dropped = find_dropped(messages);
    for (size_t i = 0; i < messages.size(); ++i) {
      if (is_dropped[i]) continue;
      if (auto status = render_message(messages[i]); !status) return status.error();
    }
    if (options_.mode == RenderMode::kCompletion) {
      out_.push_back(tokens().start);
      encode(role_word(options_.next_role));
    }
    const bool ends_in_answer = !messages.empty() && messages.back().role == Role::kAssistant &&
                                messages.back().channel == "final";
    if (options_.mode == RenderMode::kTraining && ends_in_answer) out_.back() = tokens().return_;
    return std::move(out_);
  }

 private:
  const HarmonyTokens& tokens() const { return context_.tokens; }
  void encode(std::string_view text) { context_.tokenizer.encode(text, out_); }

  std::vector<bool> find_dropped(std::span<const Message> messages) const {
    std::vector<bool> is_dropped(messages.size(), false);
    if (options_.mode == RenderMode::kMessage) return is_dropped;
    if (!options_.drop_analysis.value_or(!options_.strict_library)) return is_dropped;
    const size_t end = options_.strict_library ? library_drop_end(messages) : drop_end(messages);
    for (size_t i = 0; i < end; ++i) {
      // The library drops even what a user says on this channel.
      is_dropped[i] = messages[i].channel == "analysis" &&
                      (options_.strict_library || messages[i].role == Role::kAssistant ||
                       messages[i].role == Role::kTool);
    }
    return is_dropped;
  }

  // Reasoning before the last final answer belongs to finished turns; what comes later is the open
  // turn, whose reasoning must survive its tool calls.
  static size_t drop_end(std::span<const Message> messages) {
    for (size_t i = messages.size(); i > 0; --i) {
      const Message& message = messages[i - 1];
      if (message.role == Role::kAssistant && message.channel == "final") return i - 1;
    }
    return 0;
  }

  // The library: only up to the first final, and only if no tool call is open.
  static size_t library_drop_end(std::span<const Message> messages) {
    const auto last_assistant =
        std::find_if(messages.rbegin(), messages.rend(),
                     [](const Message& message) { return message.role == Role::kAssistant; });
    if (last_assistant == messages.rend() || last_assistant->channel != "final") return 0;
    const auto first_final =
        std::find_if(messages.begin(), messages.end(),
                     [](const Message& message) { return message.channel == "final"; });
    return static_cast<size_t>(first_final - messages.begin());
  }

  Status render_message(const Message& message) {
    out_.push_back(tokens().start);
    if (auto header = render_header(message); !header) return header.error();
    out_.push_back(tokens().message);
    for (const ContentPart& part : message.content) {
      if (auto body = render_part(message.role, part); !body) return body.error();
    }
    const bool is_call = message.role == Role::kAssistant && message.recipient.has_value();
    out_.push_back(is_call ? tokens().call : tokens().end);
    return Ok{};
  }

  // Each piece is encoded on its own: the model saw token boundaries between them.
  Status render_header(const Message& message) {
    if (message.role == Role::kTool) {
      if (!message.name) return make_error("Tools should have a name!");
      encode(*message.name);
    } else {
      std::string author(role_word(message.role));
      if (message.name) author += ":" + *message.name;
      encode(author);
    }
    if (message.recipient && *message.recipient != "all") encode(" to=" + *message.recipient);
    if (message.channel) {
      out_.push_back(tokens().channel);
      encode(*message.channel);
    }
    if (message.content_type) render_content_type(*message.content_type);
    return Ok{};
  }

  void render_content_type(std::string_view content_type) {
    if (!content_type.starts_with(kHarmonyConstrainText)) {
      encode(" " + std::string(content_type));
      return;
    }
    encode(" ");
    out_.push_back(tokens().constrain);
    content_type.remove_prefix(kHarmonyConstrainText.size());
    if (!content_type.empty()) encode(content_type);
  }

  Status render_part(Role role, const ContentPart& part) {
    if (const auto* text = std::get_if<TextContent>(&part)) {
      encode(text->text);
      return Ok{};
    }
    if (const auto* system = std::get_if<SystemContent>(&part)) {
      if (role != Role::kSystem) {
        return make_error("SystemContent may only appear in system messages, found in {}",
                          role_title(role));
      }
      encode(harmony_system_text(*system, has_function_tools_, options_.strict_library));
      return Ok{};
    }
    if (role != Role::kDeveloper) {
      return make_error("DeveloperContent may only appear in developer messages, found in {}",
                        role_title(role));
    }
    encode(harmony_developer_text(std::get<DeveloperContent>(part), options_.strict_library));
    return Ok{};
  }

  const HarmonyRenderContext& context_;
  const RenderOptions& options_;
  bool has_function_tools_ = false;
  std::vector<int32_t> out_;
};

}  // namespace

std::string harmony_system_text(const SystemContent& content, bool has_function_tools,
                                bool strict_library) {
  std::vector<std::string> head;
  if (content.model_identity) head.push_back(*content.model_identity);
  if (content.knowledge_cutoff) head.push_back("Knowledge cutoff: " + *content.knowledge_cutoff);
  if (content.conversation_start_date) {
    head.push_back("Current date: " + *content.conversation_start_date);
  }
  std::vector<std::string> sections;
  if (!head.empty()) sections.push_back(join(head, "\n"));
  if (content.reasoning_effort) {
    sections.push_back("Reasoning: " + std::string(effort_word(*content.reasoning_effort)));
  }
  if (!content.tools.empty()) {
    sections.push_back(harmony_tools_section(content.tools, strict_library));
  }
  if (content.channel_config && !content.channel_config->valid_channels.empty()) {
    std::string line =
        "# Valid channels: " + join(content.channel_config->valid_channels, ", ") + ".";
    if (content.channel_config->channel_required) {
      line += " Channel must be included for every message.";
    }
    if (has_function_tools) {
      line += "\nCalls to these tools must go to the commentary channel: 'functions'.";
    }
    sections.push_back(std::move(line));
  }
  return join(sections, "\n\n");
}

std::string harmony_developer_text(const DeveloperContent& content, bool strict_library) {
  std::vector<std::string> sections;
  if (content.instructions) {
    sections.push_back("# Instructions");
    sections.push_back(*content.instructions);
  }
  if (!content.tools.empty()) {
    sections.push_back(harmony_tools_section(content.tools, strict_library));
  }
  return join(sections, "\n\n");
}

Result<std::vector<int32_t>> render_harmony(const HarmonyRenderContext& context,
                                            std::span<const Message> messages,
                                            const RenderOptions& options) {
  if (options.mode == RenderMode::kMessage && messages.size() != 1) {
    return make_error("rendering a single message needs exactly one, not {}", messages.size());
  }
  return Renderer(context, options).run(messages);
}

}  // namespace briar
