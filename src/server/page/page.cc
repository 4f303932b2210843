#include "server/page/page.h"

#include <memory>
#include <string>
#include <string_view>

extern "C" {
extern const char briar_page_html_begin[], briar_page_html_end[];
extern const char briar_page_css_begin[], briar_page_css_end[];
extern const char briar_page_js_begin[], briar_page_js_end[];
}

namespace briar {
namespace {

void add_file(HttpServer& server, const char* path, const char* type, std::string_view text) {
  const HttpHeaders headers{
      // Nothing from elsewhere, nothing inline, no frame around it: what a model writes cannot run.
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
       "'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cache-Control", "no-cache"}};
  const HttpHandler handler = [=](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    reply->send(200, type, std::string(text), headers);
  };
  server.add({.method = "GET", .path = path, .handler = handler, .is_open = true});
}

}  // namespace

void add_page_routes(HttpServer& server) {
  add_file(server, "/", "text/html; charset=utf-8", {briar_page_html_begin, briar_page_html_end});
  add_file(server, "/page.css", "text/css; charset=utf-8",
           {briar_page_css_begin, briar_page_css_end});
  add_file(server, "/page.js", "text/javascript; charset=utf-8",
           {briar_page_js_begin, briar_page_js_end});
}

}  // namespace briar
