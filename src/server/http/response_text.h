// Responses as bytes: heads, error bodies, server-sent events, chunks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http.h"

namespace briar {

struct ResponseHead {
  int status = 200;
  std::string_view content_type = {};  // empty: no body follows
  // Of the body; nullopt: its length is not known.
  std::optional<size_t> content_length = 0;
  bool is_chunked = false;  // a body of unknown length comes in chunks; else it ends with the
                            // connection
  bool keeps_alive = true;
};

// Status line and headers with the empty line after them. Line breaks in values become spaces.
std::string response_head(const ResponseHead& head, const HttpHeaders& headers);

// OpenAI's error object for what the transport itself refuses. `message` is our own text.
std::string http_error_json(int status, std::string_view message, std::string_view code = {});

// One server-sent event, as a chunk of chunked coding if `is_chunked`, appended to `out`.
void append_event(std::string& out, std::string_view event, std::string_view data, bool is_chunked);
// A comment that keeps the connection alive.
void append_ping(std::string& out, bool is_chunked);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace briar
