#include "formats/format.h"

#include <ctime>

namespace briar {

std::string current_date() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d", &utc);
  return std::string(text, length);
}

}  // namespace briar
