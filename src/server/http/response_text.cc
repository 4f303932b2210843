#include "server/http/response_text.h"

#include <fmt/format.h>

#include <ctime>
#include <iterator>

#include "server/api/error_json.h"

namespace briar {
namespace {

const char* reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 414: return "URI Too Long";
    case 415: return "Unsupported Media Type";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    case 505: return "HTTP Version Not Supported";
    default: return "Status";
  }
}

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[40];
  // The C locale's names of days and months are HTTP's; Briar never sets another.
  const size_t size = std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return std::string(text, size);
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ");
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  out += "\r\n";
}

}  // namespace

std::string response_head(const ResponseHead& head, const HttpHeaders& headers) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\nServer: briar\r\nDate: {}\r\n", head.status,
                                reason_phrase(head.status), http_date());
  if (!head.content_type.empty()) append_header(out, "Content-Type", head.content_type);
  if (head.content_length) {
    if (head.status != 204) out += fmt::format("Content-Length: {}\r\n", *head.content_length);
  } else if (head.is_chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  out += head.keeps_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
  for (const auto& [name, value] : headers) append_header(out, name, value);
  out += "\r\n";
  return out;
}

std::string http_error_json(int status, std::string_view message, std::string_view code) {
  return error_json(Error{.message = std::string(message),
                          .param = {},
                          .http_status = status,
                          .code = std::string(code)});
}

void append_event(std::string& out, std::string_view event, std::string_view data,
                  bool is_chunked) {
  // Room for the chunk's size, which is known once the event is written: six hexadecimal digits
  // are 16 MiB, and leading zeros are allowed.
  constexpr std::string_view kSizeRoom = "000000\r\n";
  const size_t begin = out.size();
  if (is_chunked) out += kSizeRoom;
  const size_t body = out.size();
  if (!event.empty()) out.append("event: ").append(event) += '\n';
  for (size_t at = 0; at <= data.size();) {
    const size_t end = std::min(data.find('\n', at), data.size());
    out.append("data: ").append(data.substr(at, end - at)) += '\n';
    at = end + 1;
  }
  out += '\n';
  if (!is_chunked) return;
  size_t size = out.size() - body;
  CHECK_LT(size, size_t{1} << 24, "bytes of one event");
  for (size_t digit = 6; digit-- > 0; size >>= 4)
    out[begin + digit] = "0123456789abcdef"[size & 15];
  out += "\r\n";
}

void append_ping(std::string& out, bool is_chunked) {
  constexpr std::string_view kPing = ": ping\n\n";
  if (is_chunked) {
    fmt::format_to(std::back_inserter(out), "{:x}\r\n{}\r\n", kPing.size(), kPing);
  } else {
    out += kPing;
  }
}

}  // namespace briar
