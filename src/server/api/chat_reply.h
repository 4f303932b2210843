// The answer of /v1/chat/completions, streamed or whole.
#pragma once

#include <string>
#include <vector>

#include "server/api/answer_reply.h"

namespace briar {

// A call's id for the client to answer to.
std::string new_tool_call_id();

class ChatReply final : public AnswerReply {
 public:
  struct Options {
    bool includes_reasoning = true;
    std::vector<int32_t> prompt;  // only if the client wants token ids
  };

  ChatReply(Setup setup, Options options);

 protected:
  void stream(size_t choice, Deltas deltas, Tokens tokens) override;
  void stream_begin() override;
  void keep(size_t choice, Deltas deltas, Tokens tokens) override;
  std::string whole() override;
  std::string usage_chunk(const Usage& usage) override;

 private:
  struct ToolCall {
    std::string id, name, arguments;
  };
  struct Choice {
    std::string content, reasoning;  // not kept of a stream
    std::vector<ToolCall> calls;     // of a stream, only their number counts
    std::string logprobs;            // not yet sent
    std::vector<int32_t> token_ids;  // not yet sent
  };

  std::string delta_json(Choice& choice, const Delta& delta);
  void take_tokens(Choice& choice, Tokens tokens);
  void send_chunk(size_t choice, std::string_view delta, std::string_view ending);
  std::string logprobs_json(Choice& choice) const;
  std::string choice_json(size_t idx);
  std::string message_json(const Choice& choice) const;
  std::string ending_json(size_t choice) const;

  const Options options_;
  std::string chunk_begin_;  // up to the list of choices
  std::vector<Choice> choices_;
};

}  // namespace briar
