// What XGrammar wants from its host: how it reports. Compiled into its library (CMakeLists.txt).
#include <stdexcept>
#include <string>

#include "base/log.h"

namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string& file, int line, const std::string& message);
void LogMessageImpl(const std::string& file, int line, int level, const std::string& message);

// Everything that XGrammar checks, input and invariants alike, ends here; text_grammar.cc catches.
void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

// Its warnings are about what a request holds, so they are not for the server's log: anyone could
// fill it.
void LogMessageImpl(const std::string&, int, int, const std::string& message) {
  briar::log_debug("xgrammar: {}", message);
}

}  // namespace xgrammar
