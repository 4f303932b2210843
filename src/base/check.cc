#include "base/check.h"

#include <string_view>

namespace briar::detail {

void check_failed(std::source_location where, const char* expression, const std::string& values,
                  const std::string& why) {
  // Paths are shown from src/ on: the same text on every machine.
  std::string_view file = where.file_name();
  if (const size_t at = file.rfind("/src/"); at != file.npos) file.remove_prefix(at + 1);
  std::string text = fmt::format("{}:{}: check failed: {}", file, where.line(), expression);
  if (!values.empty()) text += fmt::format(" ({})", values);
  if (!why.empty()) text += ": " + why;
  throw CheckError(text);
}

}  // namespace briar::detail
