#include "server/http/request_reader.h"

#include <gtest/gtest.h>

#include <random>

namespace briar {
namespace {

// Feeds `text` in pieces of these sizes (the last one again and again) until a request, a failure
// or the end.
std::optional<RequestReader::Failure> feed(RequestReader& reader, const std::string& text,
                                           const std::vector<size_t>& sizes) {
  std::string input;
  size_t at = 0;
  for (size_t i = 0; at < text.size() && !reader.is_done(); ++i) {
    const size_t size = sizes[std::min(i, sizes.size() - 1)];
    input += text.substr(at, size);
    at += size;
    for (int again = 0; again < 2; ++again) {  // it stops once after the header
      if (auto failure = reader.feed(input)) return failure;
    }
  }
  return std::nullopt;
}

constexpr const char* kPlain =
    "POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\nX-Two: 2\r\nContent-Length: 11\r\n\r\nhello world";
constexpr const char* kChunked =
    "POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\nX-Two: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5;ext=\"a;b\"\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: t\r\n\r\n";

TEST(RequestReader, AnySplitGivesTheSameRequest) {
  std::mt19937 random(1);
  for (const char* text : {kPlain, kChunked}) {
    for (int round = 0; round < 300; ++round) {
      std::vector<size_t> sizes(20);
      for (size_t& size : sizes) size = round == 0 ? 1 : 1 + random() % 12;
      RequestReader reader({});
      const auto failure = feed(reader, text, sizes);
      ASSERT_FALSE(failure) << failure->message;
      ASSERT_TRUE(reader.is_done());
      EXPECT_EQ(reader.method(), "POST");
      EXPECT_EQ(reader.target(), "/v1/x?a=b");
      EXPECT_EQ(reader.header("x-two"), "2");
      EXPECT_EQ(reader.take_body(), "hello world");
    }
  }
}

TEST(RequestReader, LeavesTheNextRequestInTheInput) {
  RequestReader reader({});
  std::string input = std::string(kPlain) + kChunked;
  ASSERT_FALSE(reader.feed(input));
  ASSERT_TRUE(reader.has_header());
  ASSERT_FALSE(reader.feed(input));
  EXPECT_TRUE(reader.is_done());
  EXPECT_EQ(input, kChunked);
}

struct Refused {
  const char* name;
  std::string text;
  int status;
};

TEST(RequestReader, RefusesWhatPassesALimitOrIsNotHttp) {
  const HttpLimits limits{
      .max_header_bytes = 1000, .max_headers = 5, .max_target_bytes = 100, .max_body_bytes = 10};
  const std::string get = "GET / HTTP/1.1\r\n", post = "POST / HTTP/1.1\r\n";
  std::string many;
  for (int i = 0; i < 6; ++i) many += "A: b\r\n";
  const Refused cases[] = {
      {"header", get + "A: " + std::string(1000, 'a') + "\r\n\r\n", 431},
      {"header without an end", get + "A: " + std::string(2000, 'a'), 431},
      {"count", get + many + "\r\n", 431},
      {"target", "GET /" + std::string(100, 'a') + " HTTP/1.1\r\n\r\n", 414},
      {"length", post + "Content-Length: 11\r\n\r\nhello world", 413},
      {"chunks", post + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
       413},
      {"chunk header", post + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(2000, 'a'), 431},
      {"two lengths", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\naa", 400},
      {"length and chunks", post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"negative", post + "Content-Length: -1\r\n\r\n", 400},
      {"version", "GET / HTTP/3.0\r\n\r\n", 505},
      {"coding", post + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\na", 415},
      {"nonsense", "\x16\x03\x01 nonsense\r\n\r\n", 400},
  };
  for (const Refused& c : cases) {
    for (const size_t piece : {size_t{1}, size_t{7}, c.text.size()}) {
      RequestReader reader(limits);
      const auto failure = feed(reader, c.text, {piece});
      ASSERT_TRUE(failure) << c.name << " in pieces of " << piece;
      EXPECT_EQ(failure->status, c.status) << c.name << " in pieces of " << piece;
    }
  }
}

}  // namespace
}  // namespace briar
