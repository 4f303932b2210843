// One client's answer while it is made: what chat and text completions share.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/answer_format.h"
#include "server/api/api_context.h"
#include "server/api/generation.h"
#include "server/api/request.h"
#include "server/http/http.h"

namespace briar {

// An OpenAI error, with the headers that its status asks for.
void send_error(HttpReply& reply, const Error& error);
void send_json(HttpReply& reply, std::string body, HttpHeaders headers = {});

// Parsed requests name a model; an unknown one is a 404.
Status check_model(const ApiConfig& config, std::string_view name);

// Headers that tell which fields of a body were not understood.
HttpHeaders ignored_headers(const std::vector<std::string>& ignored);

int64_t unix_seconds();

// Derived classes turn deltas into chunks or keep them for one whole answer. Everything runs on the
// reply's strand.
class AnswerReply : public std::enable_shared_from_this<AnswerReply> {
 public:
  struct Setup {
    std::shared_ptr<const ApiState> api;
    std::shared_ptr<HttpReply> reply;
    AnswerHead head;
    HttpHeaders headers;
    GenerationParams params;
    size_t choices_per_prompt = 1;
    std::vector<int32_t> own_stop_ids;
  };

  explicit AnswerReply(Setup setup) : setup_(std::move(setup)) {}
  virtual ~AnswerReply() = default;

  // Hands the choices to the engine, or answers with its error.
  void start(std::vector<ChoicePlan> plans);

 protected:
  using Deltas = std::span<const Delta>;
  using Tokens = std::span<const ReadToken>;

  // A piece of a choice; only if the answer is streamed.
  virtual void stream(size_t choice, Deltas deltas, Tokens tokens) = 0;
  virtual void stream_begin() {}
  // A piece of a choice; only if it is not.
  virtual void keep(size_t choice, Deltas deltas, Tokens tokens) = 0;
  // The whole answer.
  virtual std::string whole() = 0;
  // A chunk without choices that holds the usage.
  virtual std::string usage_chunk(const Usage& usage) = 0;

  const GenerationParams& params() const { return setup_.params; }
  const AnswerHead& head() const { return setup_.head; }
  const ApiConfig& config() const { return setup_.api->config; }
  std::span<const int32_t> own_stop_ids() const { return setup_.own_stop_ids; }
  // Only while the generation calls.
  const Generation& generation() const { return *current_; }
  Usage usage() const { return usage_of(*current_, setup_.choices_per_prompt); }
  // ,"usage":... of a chunk: null until the end, unless the usage so far is asked for.
  std::string chunk_usage() const;
  // False once the client is gone: nothing is sent any more.
  bool send(std::string_view chunk);

 private:
  void begin();
  void progress(size_t choice, Deltas deltas, Tokens tokens);
  void end(const Error* error);
  void cancel();

  const Setup setup_;
  std::weak_ptr<Generation> generation_;
  std::shared_ptr<Generation> current_;  // while it calls
  bool has_begun_ = false;
  bool is_gone_ = false;
};

}  // namespace briar
