// What a request's answer is bound to while it is sampled.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "grammar/grammar.h"
#include "server/api/api_context.h"
#include "server/api/request.h"
#include "server/http/http.h"

namespace briar {

using Constraints = std::vector<std::shared_ptr<TokenConstraint>>;  // one a choice, or none

// Whether the request needs a grammar: its answer has a shape, a call is required, or some tool is
// strict.
bool needs_grammar(const ApiConfig& config, const ChatRequest& chat);

// Calls `then` with the constraints of n choices, or the error in the request's schemas. What must
// be compiled is compiled on another thread; `then` runs on the reply's strand, at once if there is
// nothing to compile.
void make_constraints(const std::shared_ptr<ApiState>& api, const ChatRequest& chat, int n,
                      const std::shared_ptr<HttpReply>& reply,
                      std::function<void(Result<Constraints>)> then);

}  // namespace briar
