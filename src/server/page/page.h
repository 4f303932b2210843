// The web page at "/": a chat and live gauges, three static files inside the program.
#pragma once

#include "server/http/http_server.h"

namespace briar {

// The page itself asks for no key, for a browser cannot send one with an address; what it calls
// does.
void add_page_routes(HttpServer& server);

}  // namespace briar
