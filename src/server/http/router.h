// Which handler answers which path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"

namespace briar {

class Router {
 public:
  void add(HttpRoute route) { routes_.push_back(std::move(route)); }

  struct Match {
    const HttpRoute* route = nullptr;  // null: none for this path and method
    std::string allowed_methods;       // of the path's routes: "GET, POST"; empty: an unknown path
  };
  // HEAD finds GET's route. Exact paths go before those that end in "/*".
  Match find(std::string_view method, std::string_view path) const;

 private:
  std::vector<HttpRoute> routes_;
};

}  // namespace briar
