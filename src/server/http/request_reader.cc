// The only file that includes Beast: a unit with it takes half a minute to compile.
#include "server/http/request_reader.h"

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cctype>
#include <iterator>
#include <utility>

namespace briar {
namespace {

namespace http = boost::beast::http;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

// Messages are fixed texts: what the client sent is never repeated to it.
RequestReader::Failure failure_of(const boost::system::error_code& error) {
  if (error == http::error::header_limit) {
    return {431, "the request line and headers are too large"};
  }
  if (error == http::error::body_limit) return {413, "the body is too large"};
  if (error == http::error::bad_version) return {505, "only HTTP/1.0 and HTTP/1.1 are spoken here"};
  return {400, "the request is not well-formed HTTP"};
}

}  // namespace

struct RequestReader::Impl {
  http::request_parser<http::string_body> parser;
};

RequestReader::RequestReader(const HttpLimits& limits)
    : impl_(std::make_unique<Impl>()), limits_(limits) {
  impl_->parser.header_limit(static_cast<uint32_t>(limits.max_header_bytes));
  impl_->parser.body_limit(limits.max_body_bytes);
}

RequestReader::~RequestReader() = default;

std::optional<RequestReader::Failure> RequestReader::feed(std::string& input) {
  auto& parser = impl_->parser;
  has_begun_ |= !input.empty();
  const bool had_header = has_header();
  parser.eager(had_header);
  size_t used = 0;
  while (!is_done() && (had_header || !has_header()) && used < input.size()) {
    boost::system::error_code error;
    const size_t size = parser.put({input.data() + used, input.size() - used}, error);
    used += size;
    if (error == http::error::need_more) break;
    if (error) return failure_of(error);
    if (size == 0) break;
  }
  input.erase(0, used);
  // A chunk's header or trailer that never ends: the parser wants it whole.
  if (had_header && !is_done() && input.size() > limits_.max_header_bytes) {
    return Failure{431, "a chunk's header is too large"};
  }
  if (!had_header && has_header()) return check_header();
  return std::nullopt;
}

std::optional<RequestReader::Failure> RequestReader::check_header() const {
  const auto& request = impl_->parser.get();
  const auto num_headers = std::distance(request.begin(), request.end());
  if (static_cast<size_t>(num_headers) > limits_.max_headers) {
    return Failure{431, "too many headers"};
  }
  if (request.target().size() > limits_.max_target_bytes) {
    return Failure{414, "the request's path is too long"};
  }
  if (const auto length = impl_->parser.content_length();
      length && *length > limits_.max_body_bytes) {
    return Failure{413, "the body is too large"};
  }
  const std::string_view coding = header("content-encoding");
  if (!coding.empty() && coding != "identity") {
    return Failure{415, "bodies are read as they are, without a content coding"};
  }
  return std::nullopt;
}

bool RequestReader::has_header() const { return impl_->parser.is_header_done(); }
bool RequestReader::is_done() const { return impl_->parser.is_done(); }

std::string_view RequestReader::method() const { return view(impl_->parser.get().method_string()); }

std::string_view RequestReader::target() const { return view(impl_->parser.get().target()); }

std::string_view RequestReader::header(std::string_view name) const {
  const auto& request = impl_->parser.get();
  const auto found = request.find(boost::beast::string_view(name.data(), name.size()));
  return found == request.end() ? std::string_view() : view(found->value());
}

bool RequestReader::keeps_alive() const { return impl_->parser.get().keep_alive(); }
bool RequestReader::is_http_1_0() const { return impl_->parser.get().version() < 11; }

bool RequestReader::expects_continue() const {
  return boost::beast::iequals(impl_->parser.get()[http::field::expect], "100-continue");
}

size_t RequestReader::body_bytes() const { return impl_->parser.get().body().size(); }

HttpHeaders RequestReader::headers() const {
  HttpHeaders out;
  for (const auto& field : impl_->parser.get()) {
    std::string name(view(field.name_string()));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    out.emplace_back(std::move(name), view(field.value()));
  }
  return out;
}

std::string RequestReader::take_body() { return std::move(impl_->parser.get().body()); }

}  // namespace briar
