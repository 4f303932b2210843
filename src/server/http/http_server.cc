#include "server/http/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "server/http/connection.h"
#include "server/http/response_text.h"
#include "server/http/shared_state.h"

namespace briar {
namespace {

using Tcp = asio::ip::tcp;
using Unix = asio::local::stream_protocol;
using ErrorCode = boost::system::error_code;

// Every stream needs a descriptor, and many systems start processes with 1,024.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::unique_ptr<asio::ssl::context> make_tls(const HttpOptions& options) {
  if (options.tls_cert.empty() && options.tls_key.empty()) return nullptr;
  if (options.tls_cert.empty() || options.tls_key.empty()) {
    throw_user_error("--tls-cert and --tls-key go together");
  }
  using Context = asio::ssl::context;
  auto context = std::make_unique<Context>(Context::tls_server);
  context->set_options(Context::default_workarounds | Context::no_sslv2 | Context::no_sslv3 |
                       Context::no_tlsv1 | Context::no_tlsv1_1);
  ErrorCode error;
  context->use_certificate_chain_file(options.tls_cert, error);
  if (error) throw_user_error("{}: not a PEM certificate: {}", options.tls_cert, error.message());
  context->use_private_key_file(options.tls_key, Context::pem, error);
  if (error)
    throw_user_error("{}: not this certificate's PEM key: {}", options.tls_key, error.message());
  return context;
}

// Names resolve to their first address: "localhost" to 127.0.0.1 or ::1.
Tcp::endpoint resolve(asio::io_context& io, const std::string& host, int port) {
  ErrorCode error;
  const auto literal = asio::ip::make_address(host, error);
  if (!error) return {literal, static_cast<uint16_t>(port)};
  Tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), Tcp::resolver::passive, error);
  if (error || found.empty()) throw_user_error("--host {}: {}", host, error.message());
  return found.begin()->endpoint();
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(HttpOptions options)
      : shared(std::make_shared<SharedState>(std::move(options))),
        tls(make_tls(shared->options)),
        work(shared->io.get_executor()) {}

  template <class Acceptor>
  asio::awaitable<void> accept_loop(Acceptor& acceptor);
  void set_tcp_options(int descriptor) const;
  void take(StreamSocket socket, const Strand& strand);
  void refuse_connection(StreamSocket socket);
  void listen_tcp();
  void listen_unix();

  std::shared_ptr<SharedState> shared;
  std::unique_ptr<asio::ssl::context> tls;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::optional<asio::basic_socket_acceptor<Tcp, Strand>> tcp;
  std::optional<asio::basic_socket_acceptor<Unix, Strand>> local;
  std::vector<std::thread> threads;
  bool has_stopped = false;
};

template <class Acceptor>
asio::awaitable<void> HttpServer::Impl::accept_loop(Acceptor& acceptor) {
  while (acceptor.is_open()) {
    Strand strand = asio::make_strand(shared->io);
    auto [error, socket] =
        co_await acceptor.async_accept(strand, asio::as_tuple(asio::use_awaitable));
    if (error == asio::error::operation_aborted || !acceptor.is_open()) co_return;
    if (error) {
      // Out of descriptors or memory: connections that end make room.
      log_warning("cannot accept a connection: {}", error.message());
      asio::steady_timer pause(shared->io, std::chrono::milliseconds(100));
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
      continue;
    }
    if constexpr (std::is_same_v<typename Acceptor::protocol_type, Tcp>) {
      set_tcp_options(socket.native_handle());
    }
    if (shared->num_connections() >= shared->options.limits.max_connections) {
      refuse_connection(StreamSocket(std::move(socket)));
    } else {
      take(StreamSocket(std::move(socket)), strand);
    }
  }
}

// Failures say that the client is gone, which the first read says too.
void HttpServer::Impl::set_tcp_options(int descriptor) const {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A client that vanished without a word would otherwise be sent to for a quarter of an hour.
  const auto longest_ms = static_cast<unsigned>(shared->options.limits.write_seconds * 1000);
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &longest_ms, sizeof(longest_ms));
}

void HttpServer::Impl::take(StreamSocket socket, const Strand& strand) {
  auto transport =
      tls ? make_tls_transport(std::move(socket), *tls) : make_plain_transport(std::move(socket));
  std::make_shared<Connection>(shared, strand, std::move(transport))->start();
}

void HttpServer::Impl::refuse_connection(StreamSocket socket) {
  if (tls) return;  // a handshake for this would be work
  const std::string body = http_error_json(503, "too many connections", "too_many_connections");
  const std::string text = response_head({.status = 503,
                                          .content_type = "application/json",
                                          .content_length = body.size(),
                                          .keeps_alive = false},
                                         {{"Retry-After", "1"}}) +
                           body;
  ErrorCode ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
}

void HttpServer::Impl::listen_tcp() {
  const HttpOptions& options = shared->options;
  if (options.port < 0 || options.port > 65535) {
    throw_user_error("--port {}: expected 0 to 65535", options.port);
  }
  const Tcp::endpoint endpoint = resolve(shared->io, options.host, options.port);
  ErrorCode error;
  tcp.emplace(asio::make_strand(shared->io));
  tcp->open(endpoint.protocol(), error);
  if (!error) tcp->set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) tcp->bind(endpoint, error);
  if (!error) tcp->listen(4096, error);
  if (error)
    throw_user_error("cannot listen on {}:{}: {}", options.host, options.port, error.message());
  asio::co_spawn(tcp->get_executor(), accept_loop(*tcp), asio::detached);
}

void HttpServer::Impl::listen_unix() {
  const std::string& path = shared->options.unix_socket;
  struct stat status {};
  // What an earlier server left behind; nothing else is removed.
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) ::unlink(path.c_str());
  ErrorCode error;
  local.emplace(asio::make_strand(shared->io));
  local->open(Unix(), error);
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    throw_user_error("--unix-socket {}: the path is too long", path);
  }
  if (!error) local->bind(Unix::endpoint(path), error);
  if (!error) local->listen(4096, error);
  if (error) throw_user_error("cannot listen on {}: {}", path, error.message());
  asio::co_spawn(local->get_executor(), accept_loop(*local), asio::detached);
}

HttpServer::HttpServer(HttpOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::add(HttpRoute route) { impl_->shared->router.add(std::move(route)); }

void HttpServer::start() {
  raise_descriptor_limit();
  if (impl_->shared->options.unix_socket.empty()) {
    impl_->listen_tcp();
  } else {
    impl_->listen_unix();
  }
  for (int i = 0; i < std::max(1, impl_->shared->options.num_threads); ++i) {
    impl_->threads.emplace_back([shared = impl_->shared] { shared->io.run(); });
  }
}

std::string HttpServer::address() const {
  const HttpOptions& options = impl_->shared->options;
  if (!options.unix_socket.empty()) return "unix:" + options.unix_socket;
  const bool is_v6 = impl_->tcp->local_endpoint().address().is_v6();
  return fmt::format("{}://{}{}{}:{}", impl_->tls ? "https" : "http", is_v6 ? "[" : "",
                     impl_->tcp->local_endpoint().address().to_string(), is_v6 ? "]" : "",
                     impl_->tcp->local_endpoint().port());
}

void HttpServer::begin_drain() { impl_->shared->is_draining = true; }
bool HttpServer::is_draining() const { return impl_->shared->is_draining; }
int64_t HttpServer::num_active() const { return impl_->shared->num_active; }

void HttpServer::end_answers() {
  for (const auto& connection : impl_->shared->open_connections()) connection->post_shutdown();
}

void HttpServer::stop() {
  if (std::exchange(impl_->has_stopped, true)) return;
  impl_->shared->is_stopping = true;  // before the list of connections is taken
  const auto close_acceptor = [](auto& acceptor) {
    if (!acceptor) return;
    asio::post(acceptor->get_executor(), [&acceptor] {
      ErrorCode ignored;
      acceptor->close(ignored);
    });
  };
  close_acceptor(impl_->tcp);
  close_acceptor(impl_->local);
  if (!impl_->shared->options.unix_socket.empty()) {
    ::unlink(impl_->shared->options.unix_socket.c_str());
  }
  for (const auto& connection : impl_->shared->open_connections()) connection->post_close();
  impl_->work.reset();  // the threads end when nothing is left to do
  for (std::thread& thread : impl_->threads) thread.join();
  impl_->shared->has_stopped = true;
}

}  // namespace briar
