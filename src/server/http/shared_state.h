// What all connections of one server share.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/http/access.h"
#include "server/http/http_options.h"
#include "server/http/router.h"

namespace briar {

class Connection;

struct SharedState {
  explicit SharedState(HttpOptions o)
      : options(std::move(o)), keys(options.api_keys), cors(options.cors_origins) {}

  // First, so that it is destroyed last: sockets and timers of connections refer to it.
  boost::asio::io_context io;
  const HttpOptions options;
  const ApiKeys keys;
  const CorsRules cors;
  Router router;  // complete before the first connection

  std::atomic<bool> is_draining = false;
  std::atomic<bool> is_stopping = false;  // new connections close at once
  std::atomic<bool> has_stopped = false;  // nobody runs `io` any more
  std::atomic<int64_t> num_active = 0;    // requests being answered
  std::atomic<int64_t> num_body_bytes = 0;

  // All open connections.
  std::mutex mutex;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections;

  size_t num_connections() {
    std::lock_guard lock(mutex);
    return connections.size();
  }
  std::vector<std::shared_ptr<Connection>> open_connections() {
    std::lock_guard lock(mutex);
    std::vector<std::shared_ptr<Connection>> out;
    for (const auto& [key, weak] : connections) {
      if (auto connection = weak.lock()) out.push_back(std::move(connection));
    }
    return out;
  }
};

}  // namespace briar
