// Errors in OpenAI's shape.
#pragma once

#include <string>

#include "base/result.h"

namespace briar {

// {"error": {message, type, param, code}}, always valid UTF-8 whatever `error` quotes. The type
// follows from the status: invalid_request_error, authentication_error, permission_error,
// rate_limit_error, timeout_error, server_error.
std::string error_json(const Error& error);

// The inner object alone, as a failed Response carries it: {"code", "message"}.
std::string response_error_json(const Error& error);

}  // namespace briar
