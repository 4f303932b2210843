// One HTTP/1.1 request out of bytes, however they are split. Sees no sockets.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/http.h"
#include "server/http/http_options.h"

namespace briar {

class RequestReader {
 public:
  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();

  struct Failure {
    int status = 400;
    std::string_view message = {};
  };
  // Takes bytes from the front of `input` and drops them there. After the header it stops once, so
  // that the caller can look at it before the body. Fails for what is not HTTP or passes a limit.
  std::optional<Failure> feed(std::string& input);

  bool has_begun() const { return has_begun_; }
  bool has_header() const;
  bool is_done() const;

  // Once there is a header:
  std::string_view method() const;
  std::string_view target() const;
  std::string_view header(std::string_view name) const;  // empty if there is none
  bool keeps_alive() const;
  bool is_http_1_0() const;
  bool expects_continue() const;
  size_t body_bytes() const;  // so far
  // All headers, names in lower case.
  HttpHeaders headers() const;
  // Once it is done.
  std::string take_body();

 private:
  std::optional<Failure> check_header() const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
  HttpLimits limits_;
  bool has_begun_ = false;
};

}  // namespace briar
