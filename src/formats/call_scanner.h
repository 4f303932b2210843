// Finds tool calls in the JSON that models write: {"name": "f", "arguments": {...}}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace briar {

// What the scanner finds, in order.
class CallSink {
 public:
  virtual ~CallSink() = default;
  virtual void begin_call(std::string_view name) = 0;
  virtual void add_arguments(std::string_view text) = 0;  // as the model wrote them
  virtual void end_call() = 0;
  virtual void add_text(std::string_view text) = 0;  // what is no call
};

// Reads a stretch of text that should hold one call, or several, in a list or not. Arguments are
// passed on as they come. Whatever the text is, it fails for nothing and loses nothing: JSON that
// is no call of a declared function is text, and so is all that follows it; a call that is cut off
// keeps the arguments that it has.
class CallScanner {
 public:
  // `names`: the declared functions.
  CallScanner(const std::vector<std::string>& names, CallSink& sink) : names_(names), sink_(sink) {}

  void push(std::string_view text);
  // The end of the stretch; the next push() begins another.
  void finish();

 private:
  enum class State {
    kBetween,    // before, between and behind calls
    kHead,       // in a call, before its arguments
    kArguments,  // in the arguments
    kTail,       // in a call, behind the arguments
    kWhole,      // in an object whose keys come in another order
    kText,       // no more calls
  };
  // What the beginning of an object says.
  enum class Verdict { kUnknown, kCall, kOther, kNoCall };
  struct Head {
    Verdict verdict = Verdict::kUnknown;
    std::string name;
    size_t arguments_begin = 0;  // offset of their brace; 0: there are none
  };

  // Each takes some of the text from the front and returns how much.
  size_t take_between(std::string_view text);
  size_t take_head(std::string_view text);
  size_t take_value(std::string_view text);  // of kArguments, kTail and kWhole
  void end_value();

  void begin_call(std::string_view name);
  Head read_head() const;
  void give_up();
  void end_whole();
  bool is_declared(std::string_view name) const;

  const std::vector<std::string>& names_;
  CallSink& sink_;
  State state_ = State::kBetween;
  std::string raw_;  // of the object at hand, in kHead and kWhole; what is skipped in kBetween
  bool has_calls_ = false;  // in this stretch
  // Of the JSON value at hand.
  int depth_ = 0;
  bool is_in_string_ = false;
  bool is_escaped_ = false;
};

}  // namespace briar
