// One response while it is made: for a client that waits, or in the background.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/api/answer_reply.h"
#include "server/api/response_builder.h"

namespace briar {

// Everything runs on one strand: the reply's, or the worker of background responses.
class ResponseRun : public std::enable_shared_from_this<ResponseRun> {
 public:
  struct Setup {
    std::shared_ptr<ApiState> api;
    std::shared_ptr<HttpReply> reply;  // null in the background
    AnswerHead head;
    HttpHeaders headers;
    ResponsesRequest request;
  };

  explicit ResponseRun(Setup setup);

  // Hands the choice to the engine. The engine's refusal is answered, or returned if there is no
  // reply.
  Status start(ChoicePlan plan);
  // Ends a background response as cancelled; false if it has ended already.
  bool cancel();

  // Of a background response that has just been started.
  std::string json() const { return builder_.json(); }

 private:
  Status submit(ChoicePlan plan);
  void begin_stream();
  void end(const Error* error);
  void store(bool is_in_progress);
  void forget();
  void client_gone();

  const Setup setup_;
  ResponseBuilder builder_;
  std::weak_ptr<Generation> generation_;
  bool has_begun_ = false;
  bool has_ended_ = false;
};

}  // namespace briar
