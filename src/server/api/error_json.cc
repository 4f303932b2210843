#include "server/api/error_json.h"

#include <fmt/core.h>

#include "formats/json_text.h"
#include "tokenizer/utf8.h"

namespace briar {
namespace {

// A message may quote what a client sent; nobody needs a megabyte of it back.
constexpr size_t kMaxMessageBytes = 2000;

const char* error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 408:
    case 504: return "timeout_error";
    case 429: return "rate_limit_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string quote(std::string_view text) {
  return json_quote(lossy_utf8(text.substr(0, kMaxMessageBytes)));
}

std::string quote_or_null(std::string_view text) { return text.empty() ? "null" : quote(text); }

}  // namespace

std::string error_json(const Error& error) {
  return fmt::format(R"({{"error":{{"message":{},"type":"{}","param":{},"code":{}}}}})",
                     quote(error.message), error_type(error.http_status),
                     quote_or_null(error.param), quote_or_null(error.code));
}

std::string response_error_json(const Error& error) {
  return fmt::format(R"({{"code":{},"message":{}}})",
                     quote(error.code.empty() ? error_type(error.http_status) : error.code),
                     quote(error.message));
}

}  // namespace briar
