// Bounds the time that a call into XGrammar takes. Some grammars of a few bytes keep it busy for
// hours, so its sources are patched to ask in their inner loops (cmake/xgrammar-budget.patch).
#pragma once

namespace briar {

// While one exists, XGrammar's work in this thread ends with an exception when the thread has used
// that much processor time. An inner one may only shorten what is left.
class XgrammarBudget {
 public:
  explicit XgrammarBudget(double seconds);
  ~XgrammarBudget();
  XgrammarBudget(const XgrammarBudget&) = delete;
  XgrammarBudget& operator=(const XgrammarBudget&) = delete;

 private:
  double outer_end_;
};

// Processor time of this thread so far.
double thread_seconds();

}  // namespace briar
