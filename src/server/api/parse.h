// JSON bodies to typed requests, or the error that says what is wrong with which field.
#pragma once

#include <string_view>

#include "base/result.h"
#include "server/api/limits.h"
#include "server/api/request.h"

namespace briar {

struct ParseContext {
  ApiLimits limits;
  int64_t num_token_ids = 0;  // ids from 0 up to this exist
};

Result<Parsed<ChatRequest>> parse_chat_request(std::string_view body, const ParseContext& context);
Result<Parsed<CompletionRequest>> parse_completion_request(std::string_view body,
                                                           const ParseContext& context);

}  // namespace briar
