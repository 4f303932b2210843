// A chat format: how messages become a model's token ids and how its token ids become messages.
//
// A format is a renderer and a streaming parser behind one interface. To add one: a class that
// implements Format, and one line in registry.cc. docs/formats.md says what each of them has.
// Formats know token ids and messages; they know nothing of HTTP, and the engine knows nothing of
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/message.h"

namespace briar {

// Today, UTC, as YYYY-MM-DD.
std::string current_date();

// What the final answer must look like, told to the model in words.
struct ResponseFormat {
  std::string name;
  std::string description;  // may be empty
  std::string schema_json;
};

// One chat request: everything that goes into a prompt.
struct PromptRequest {
  // The history. System and developer texts at its head are instructions; later ones stay in place.
  std::vector<Message> messages;
  std::optional<std::string> instructions;  // before those of the history
  ReasoningEffort reasoning_effort = ReasoningEffort::kMedium;
  // False: answer without reasoning, where the format can ask for that (Qwen3).
  bool wants_reasoning = true;
  std::optional<std::string> date = current_date();  // nullopt: the prompt has no date
  std::vector<ToolDefinition> tools;
  std::vector<ResponseFormat> response_formats;
  // The last message is an answer that the model is to go on with: its end is left out.
  bool continues_last = false;
};

enum class RenderMode {
  kConversation,  // all messages
  kCompletion,    // all messages and the opening of the next one
  kTraining,      // as kConversation; a closing final answer ends the way the model should end it
  kMessage,       // one message on its own
};

struct RenderOptions {
  RenderMode mode = RenderMode::kCompletion;
  Role next_role = Role::kAssistant;
  // Whether reasoning of finished turns is left out. Not set: the format's default.
  std::optional<bool> drop_analysis = {};
  bool has_function_tools = false;  // kMessage only: what the rest of the conversation declares
  // Exactly what the format's reference library does, its quirks included.
  bool strict_library = false;
};

// One step of a streamed answer. Text is always whole characters.
struct Delta {
  enum class Kind { kContent, kReasoning, kToolCall };
  Kind kind = Kind::kContent;
  // Counts the messages that the parser has begun; two deltas of one message share it.
  int message_idx = 0;
  // Counts the tool calls; -1 unless kind is kToolCall.
  int tool_call_idx = -1;
  // The function's name as the client declared it: in a call's first delta, empty in the others.
  std::string tool_name;
  std::string text;  // of a call: a piece of its arguments, as the model wrote them
};

// A message that has ended, and what it is to the client.
struct ParsedMessage {
  Message message;
  Delta::Kind kind = Delta::Kind::kContent;
  std::string tool_name;   // kToolCall only
  int tool_call_idx = -1;  // kToolCall only
};

struct ParserOptions {
  // The prompt ended in the opening of a message of this role, so the first ids belong to its
  // header.
  std::optional<Role> role = Role::kAssistant;
  // The prompt ended within an answer's text (PromptRequest::continues_last): `role` is its author.
  bool is_in_answer = false;
  // Functions that the client declared. A call of anything else is text.
  std::vector<std::string> tool_names = {};
};

// What a tolerant parser stepped over; each is worth a line in the log.
struct ParserWarnings {
  int skipped_tokens = 0;    // between messages, or structure where none belongs
  int repaired_headers = 0;  // headers that broke the grammar and were understood nevertheless
  int total() const { return skipped_tokens + repaired_headers; }
};

// Turns sampled ids into messages as they come. Whatever the ids are: it never fails, never throws
// for them, and never loses text of a message.
class StreamParser {
 public:
  virtual ~StreamParser() = default;

  // Takes one id and appends what has become certain.
  virtual void push(int32_t id, std::vector<Delta>& out) = 0;
  // The end of the stream: closes an open message. Only reading is allowed after it.
  virtual void finish(std::vector<Delta>& out) = 0;

  // Messages that have ended so far.
  virtual const std::vector<ParsedMessage>& messages() const = 0;
  virtual const ParserWarnings& warnings() const = 0;
  // False while, or if the stream ended while, a message was begun and not closed by a stop id.
  virtual bool is_complete() const = 0;
  // What the message whose text is being read is; nothing between messages and in headers.
  virtual std::optional<Delta::Kind> open_kind() const = 0;
};

// A recorded stream, parsed as a whole: what `briar format parse` and tests use.
struct TranscriptOptions {
  std::optional<Role> role = {};
  bool strict_library = false;     // the reference library's parser instead of the tolerant one
  bool is_strict_grammar = true;   // strict_library only: the library's own `strict` option
  bool has_end = true;             // whether the stream ends after the ids
  bool continue_on_error = false;  // strict_library only
};

struct TranscriptError {
  size_t token_idx = 0;  // the number of ids for an error at the end of the stream
  std::string message;
};

struct Transcript {
  std::vector<Message> messages;
  std::vector<TranscriptError> errors;  // always empty unless strict_library
};

struct ToolRendering {
  std::string declaration;      // as the model reads it, comment lines first
  std::vector<int32_t> tokens;  // a whole message that declares this one tool
};

// How sampling can be kept from (further) reasoning.
struct ReasoningGate {
  int32_t end_id = -1;        // ends an open reasoning message
  int32_t channel_id = -1;    // what comes next names a message's kind
  int32_t reasoning_id = -1;  // the first id of the name that means reasoning
};

class Format {
 public:
  virtual ~Format() = default;

  virtual std::string_view name() const = 0;

  // The ids of a whole chat request, ending where the model is to continue.
  virtual Result<std::vector<int32_t>> render_prompt(const PromptRequest& request) const = 0;
  // The ids of messages as they are, nothing added.
  virtual Result<std::vector<int32_t>> render(std::span<const Message> messages,
                                              const RenderOptions& options) const = 0;
  virtual Result<ToolRendering> render_tool(const ToolDefinition& tool,
                                            bool strict_library) const = 0;

  virtual std::unique_ptr<StreamParser> make_parser(ParserOptions options) const = 0;
  // Ids are 64 bits wide here because recorded streams hold ids that no model has.
  virtual Transcript parse(std::span<const int64_t> ids,
                           const TranscriptOptions& options) const = 0;

  // Sampling must stop after these ids: the answer is done, or a tool is to act.
  virtual std::vector<int32_t> stop_ids() const = 0;
  // Nothing: the format has no reasoning.
  virtual std::optional<ReasoningGate> reasoning_gate() const = 0;
  // The ids as text for people, structure spelled out.
  virtual std::string text_of(std::span<const int32_t> ids) const = 0;
};

}  // namespace briar
