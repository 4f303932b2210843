// A connection's bytes: plain (TCP or a unix socket) or TLS, behind one interface.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/strand.hpp>
#include <cstddef>
#include <memory>

namespace briar {

namespace asio = boost::asio;
using Strand = asio::strand<asio::io_context::executor_type>;
using StreamSocket = asio::basic_stream_socket<asio::generic::stream_protocol, Strand>;

class Connection;

// The continuation of a read or a write: a method of the connection, called on its strand. A type
// of its own and not a std::function because every streamed token passes here.
struct IoDone {
  using Method = void (Connection::*)(const boost::system::error_code&, size_t);
  std::shared_ptr<Connection> connection;
  Method method = nullptr;
  void operator()(const boost::system::error_code& error, size_t size) const {
    (connection.get()->*method)(error, size);
  }
};

// At most one start_read() and one start_write() are under way at a time; everything on the strand.
class Transport {
 public:
  virtual ~Transport() = default;
  // Before anything else; plain transports are done at once.
  virtual void start_handshake(IoDone done) = 0;
  // At least one byte, or an error.
  virtual void start_read(asio::mutable_buffer buffer, IoDone done) = 0;
  // Perhaps not all of the bytes.
  virtual void start_write(asio::const_buffer bytes, IoDone done) = 0;
  // Tells the client that no more bytes come. Not while a read or a write is under way.
  virtual void start_shutdown(IoDone done) = 0;
  // Ends what is under way with an error.
  virtual void cancel() = 0;
  virtual void close() = 0;
};

std::unique_ptr<Transport> make_plain_transport(StreamSocket socket);
// `context` outlives the transport.
std::unique_ptr<Transport> make_tls_transport(StreamSocket socket, asio::ssl::context& context);

}  // namespace briar
