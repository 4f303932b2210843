#include "server/http/router.h"

namespace briar {
namespace {

bool fits(std::string_view pattern, std::string_view path, bool is_exact) {
  if (!pattern.ends_with("/*")) return is_exact && pattern == path;
  pattern.remove_suffix(1);
  return !is_exact && path.size() > pattern.size() && path.starts_with(pattern);
}

}  // namespace

Router::Match Router::find(std::string_view method, std::string_view path) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const bool is_exact : {true, false}) {
    Match match;
    for (const HttpRoute& route : routes_) {
      if (!fits(route.path, path, is_exact)) continue;
      if (route.method == wanted && match.route == nullptr) match.route = &route;
      if (!match.allowed_methods.empty()) match.allowed_methods += ", ";
      match.allowed_methods += route.method;
    }
    if (!match.allowed_methods.empty()) return match;
  }
  return {};
}

}  // namespace briar
