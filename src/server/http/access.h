// Who may ask for what: API keys and web pages of other origins.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"

namespace briar {

// The keys are kept and compared as SHA-256 digests, all of them each time: how long it takes says
// nothing of the keys, their lengths or which of them fits.
class ApiKeys {
 public:
  explicit ApiKeys(const std::vector<std::string>& keys);
  bool is_empty() const { return digests_.empty(); }
  // `authorization` is the header's value, "Bearer KEY"; null if there is none.
  bool allows(const std::string* authorization) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  static Digest digest(std::string_view key);
  std::vector<Digest> digests_;
};

// Cross-origin rules: an allowed origin is named in the answer, never "*" and never with
// credentials; to any other no header is sent.
class CorsRules {
 public:
  explicit CorsRules(std::vector<std::string> origins) : origins_(std::move(origins)) {}
  bool allows(std::string_view origin) const;
  // Headers of every answer to a request from this origin.
  HttpHeaders headers(std::string_view origin) const;
  // And of the answer to a preflight.
  HttpHeaders preflight_headers(std::string_view origin) const;

 private:
  std::vector<std::string> origins_;
};

// Whether a page of `origin` ("http://localhost:8000") is served by this very `host`
// ("localhost:8000").
bool is_same_origin(std::string_view origin, std::string_view host);

// %XX undone. False: an ill-formed escape or a zero byte.
bool decode_path(std::string_view target_path, std::string& out);

// An X-Request-Id that is fit to be echoed and to be part of ids: 1 to 128 of [A-Za-z0-9._:-].
bool is_good_request_id(std::string_view id);

}  // namespace briar
