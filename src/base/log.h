// Log lines on standard error. Results never go through here: they belong on standard output.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace briar {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Accepts debug, info, warning, error, off. Returns false for anything else.
bool set_log_level(std::string_view name);
void log_line(LogLevel level, const std::string& text);

template <class... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::kDebug, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::kInfo, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::kWarning, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::kError, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace briar
