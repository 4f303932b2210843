#include "server/http/access.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace briar {

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) digests_.push_back(digest(key));
}

ApiKeys::Digest ApiKeys::digest(std::string_view key) {
  Digest out;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), out.data());
  return out;
}

bool ApiKeys::allows(const std::string* authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view key = authorization != nullptr ? *authorization : std::string_view();
  const bool has_scheme =
      key.size() >= kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), key.begin(), [](char a, char b) {
        return a == static_cast<char>(std::tolower(static_cast<unsigned char>(b)));
      });
  key.remove_prefix(has_scheme ? kScheme.size() : key.size());
  const Digest given = digest(key);
  int matches = 0;
  for (const Digest& known : digests_) {
    matches |= CRYPTO_memcmp(known.data(), given.data(), given.size()) == 0;
  }
  return has_scheme && matches != 0;
}

bool CorsRules::allows(std::string_view origin) const {
  return std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
}

HttpHeaders CorsRules::headers(std::string_view origin) const {
  if (origins_.empty()) return {};
  // Answers differ by origin: caches must know even where none is allowed.
  HttpHeaders out{{"Vary", "Origin"}};
  if (!allows(origin)) return out;
  out.emplace_back("Access-Control-Allow-Origin", origin);
  out.emplace_back("Access-Control-Expose-Headers",
                   "X-Request-Id, Retry-After, X-Briar-Ignored-Fields");
  return out;
}

HttpHeaders CorsRules::preflight_headers(std::string_view origin) const {
  HttpHeaders out = headers(origin);
  if (!allows(origin)) return out;
  out.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  // The headers that OpenAI's browser client sends are listed by name: "*" would not cover
  // Authorization.
  out.emplace_back(
      "Access-Control-Allow-Headers",
      "Authorization, Content-Type, Accept, X-Request-Id, OpenAI-Organization, OpenAI-Project, "
      "X-Stainless-Arch, X-Stainless-Lang, X-Stainless-OS, X-Stainless-Package-Version, "
      "X-Stainless-Retry-Count, X-Stainless-Runtime, X-Stainless-Runtime-Version, "
      "X-Stainless-Timeout, X-Stainless-Helper-Method");
  out.emplace_back("Access-Control-Max-Age", "600");
  return out;
}

bool is_same_origin(std::string_view origin, std::string_view host) {
  const size_t scheme = origin.find("://");
  return scheme != origin.npos && !host.empty() && origin.substr(scheme + 3) == host;
}

bool decode_path(std::string_view path, std::string& out) {
  out.clear();
  for (size_t i = 0; i < path.size(); ++i) {
    char c = path[i];
    if (c == '%') {
      unsigned value = 0;
      const char* begin = path.data() + i + 1;
      if (i + 2 >= path.size() || std::from_chars(begin, begin + 2, value, 16).ptr != begin + 2) {
        return false;
      }
      c = static_cast<char>(value);
      i += 2;
    }
    if (c == '\0') return false;
    out += c;
  }
  return true;
}

bool is_good_request_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("._:-").find(c) != std::string_view::npos;
  });
}

}  // namespace briar
