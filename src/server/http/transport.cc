#include "server/http/transport.h"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <utility>

namespace briar {
namespace {

using ErrorCode = boost::system::error_code;

void close_socket(StreamSocket& socket) {
  ErrorCode ignored;  // it is gone either way
  socket.close(ignored);
}

void cancel_socket(StreamSocket& socket) {
  ErrorCode ignored;
  socket.cancel(ignored);
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(StreamSocket socket) : socket_(std::move(socket)) {}

  void start_handshake(IoDone done) override { finish({}, std::move(done)); }
  void start_read(asio::mutable_buffer buffer, IoDone done) override {
    socket_.async_read_some(buffer, std::move(done));
  }
  void start_write(asio::const_buffer bytes, IoDone done) override {
    socket_.async_write_some(bytes, std::move(done));
  }
  void start_shutdown(IoDone done) override {
    ErrorCode error;
    socket_.shutdown(StreamSocket::shutdown_send, error);
    finish(error, std::move(done));
  }
  void cancel() override { cancel_socket(socket_); }
  void close() override { close_socket(socket_); }

 private:
  void finish(ErrorCode error, IoDone done) {
    asio::post(socket_.get_executor(), [error, done = std::move(done)] { done(error, 0); });
  }

  StreamSocket socket_;
};

class TlsTransport final : public Transport {
 public:
  TlsTransport(StreamSocket socket, asio::ssl::context& context)
      : stream_(std::move(socket), context) {}

  void start_handshake(IoDone done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](const ErrorCode& error) { done(error, 0); });
  }
  void start_read(asio::mutable_buffer buffer, IoDone done) override {
    stream_.async_read_some(buffer, std::move(done));
  }
  void start_write(asio::const_buffer bytes, IoDone done) override {
    stream_.async_write_some(bytes, std::move(done));
  }
  void start_shutdown(IoDone done) override {
    stream_.async_shutdown([done = std::move(done)](const ErrorCode& error) { done(error, 0); });
  }
  void cancel() override { cancel_socket(stream_.next_layer()); }
  void close() override { close_socket(stream_.next_layer()); }

 private:
  asio::ssl::stream<StreamSocket> stream_;
};

}  // namespace

std::unique_ptr<Transport> make_plain_transport(StreamSocket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> make_tls_transport(StreamSocket socket, asio::ssl::context& context) {
  return std::make_unique<TlsTransport>(std::move(socket), context);
}

}  // namespace briar
