// What XGrammar wants from its host: how it reports. Compiled into its library (CMakeLists.txt).
#include <algorithm>
#include <ctime>
#include <limits>
#include <stdexcept>
#include <string>

#include "base/log.h"
#include "grammar/xgrammar_budget.h"

namespace briar {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
thread_local double budget_end = kNever;
thread_local unsigned num_checks = 0;

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

XgrammarBudget::XgrammarBudget(double seconds) : outer_end_(budget_end) {
  budget_end = std::min(budget_end, thread_seconds() + seconds);
}
XgrammarBudget::~XgrammarBudget() { budget_end = outer_end_; }

}  // namespace briar

namespace xgrammar {

[[noreturn]] void LogFatalImpl(const std::string& file, int line, const std::string& message);
void LogMessageImpl(const std::string& file, int line, int level, const std::string& message);
void CheckBudgetImpl();

// Everything that XGrammar checks, input and invariants alike, ends here; text_grammar.cc catches.
void LogFatalImpl(const std::string&, int, const std::string& message) {
  throw std::runtime_error(message);
}

// Its warnings are about what a request holds, so they are not for the server's log: anyone could
// fill it.
void LogMessageImpl(const std::string&, int, int, const std::string& message) {
  briar::log_debug("xgrammar: {}", message);
}

// Asking the clock takes as long as a hundred of the steps between two calls.
void CheckBudgetImpl() {
  if (++briar::num_checks % 256 != 0 || briar::budget_end == briar::kNever) return;
  if (briar::thread_seconds() > briar::budget_end) throw std::runtime_error("it takes too long");
}

}  // namespace xgrammar
