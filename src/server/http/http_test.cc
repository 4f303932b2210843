// The parts of the transport that need no socket; tests/server_http_test.py has the rest.
#include <gtest/gtest.h>

#include "server/http/access.h"
#include "server/http/response_text.h"
#include "server/http/router.h"

namespace briar {
namespace {

TEST(ApiKeys, OnlyWholeKeysOpen) {
  const ApiKeys keys({"alpha", "beta-2"});
  for (const char* good : {"Bearer alpha", "bearer alpha", "BEARER beta-2"}) {
    const std::string header = good;
    EXPECT_TRUE(keys.allows(&header)) << header;
  }
  for (const char* bad : {"", "alpha", "Bearer", "Bearer ", "Bearer alph", "Bearer alphaa",
                          "Bearer  alpha", "Basic alpha", "Bearer beta-2 "}) {
    const std::string header = bad;
    EXPECT_FALSE(keys.allows(&header)) << header;
  }
  EXPECT_FALSE(keys.allows(nullptr));
}

TEST(Cors, StrangersGetNoHeader) {
  EXPECT_TRUE(CorsRules({}).headers("https://a.example").empty());
  const CorsRules rules({"https://a.example"});
  for (const char* stranger : {"https://a.example.evil", "http://a.example", "null", "", "*"}) {
    for (const auto& [name, value] : rules.preflight_headers(stranger)) EXPECT_EQ(name, "Vary");
  }
  for (const auto& [name, value] : rules.preflight_headers("https://a.example")) {
    EXPECT_EQ(value.find('*'), value.npos) << name;
    EXPECT_NE(name, "Access-Control-Allow-Credentials");
  }
  EXPECT_TRUE(is_same_origin("http://localhost:8000", "localhost:8000"));
  EXPECT_FALSE(is_same_origin("http://localhost:8000", "localhost"));
  EXPECT_FALSE(is_same_origin("null", ""));
}

TEST(Paths, EscapesAreUndoneOrRefused) {
  std::string out;
  EXPECT_TRUE(decode_path("/a%20b%2F", out));
  EXPECT_EQ(out, "/a b/");
  for (const char* bad : {"/%", "/%1", "/%zz", "/%+1", "/%00"}) {
    EXPECT_FALSE(decode_path(bad, out)) << bad;
  }
}

TEST(Router, ExactPathsBeforePatterns) {
  Router router;
  router.add({.method = "POST", .path = "/v1/r", .handler = {}});
  router.add({.method = "GET", .path = "/v1/r/*", .handler = {}});
  router.add({.method = "DELETE", .path = "/v1/r/*", .handler = {}});
  router.add({.method = "GET", .path = "/v1/r/special", .handler = {}});
  EXPECT_EQ(router.find("GET", "/v1/r/1").route->path, "/v1/r/*");
  EXPECT_EQ(router.find("HEAD", "/v1/r/special").route->path, "/v1/r/special");
  EXPECT_EQ(router.find("GET", "/v1/r").route, nullptr);
  EXPECT_EQ(router.find("GET", "/v1/r").allowed_methods, "POST");
  EXPECT_EQ(router.find("POST", "/v1/r/1").allowed_methods, "GET, DELETE");
  EXPECT_EQ(router.find("GET", "/v1/r/").allowed_methods, "");
  EXPECT_EQ(router.find("GET", "/v1").allowed_methods, "");
}

TEST(ResponseText, EventsAreFramed) {
  std::string plain, chunked;
  append_event(plain, "done", "a\nb", false);
  EXPECT_EQ(plain, "event: done\ndata: a\ndata: b\n\n");
  append_event(chunked, "", "x", true);
  EXPECT_EQ(chunked, "000009\r\ndata: x\n\n\r\n");
  chunked.clear();
  append_event(chunked, "", std::string(1 << 20, 'x'), true);
  EXPECT_EQ(std::stoul(chunked.substr(0, 6), nullptr, 16), (1u << 20) + 8);
  EXPECT_EQ(chunked.size(), 8 + (1u << 20) + 8 + 2);
}

TEST(ResponseText, ValuesCannotBreakTheHead) {
  const std::string head = response_head({.status = 200}, {{"X-A", "b\r\nX-Evil: 1\x01"}});
  EXPECT_NE(head.find("X-A: b  X-Evil: 1 \r\n"), head.npos);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST(ResponseText, RequestIdsFitToBeEchoed) {
  EXPECT_TRUE(is_good_request_id("A-z_0.9:x"));
  for (const char* bad : {"", "a b", "a\"", "a\n", "caf\xc3\xa9"}) {
    EXPECT_FALSE(is_good_request_id(bad)) << bad;
  }
  EXPECT_FALSE(is_good_request_id(std::string(129, 'a')));
}

}  // namespace
}  // namespace briar
