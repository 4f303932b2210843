#include "formats/call_scanner.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "base/json.h"
#include "formats/json_text.h"

namespace briar {
namespace {

namespace bj = boost::json;

// A longer beginning without arguments is no call: a name has at most 64 characters. The bound also
// keeps reading it again with every token cheap.
constexpr size_t kMaxHeadSize = 512;

bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_arguments_key(std::string_view key) { return key == "arguments" || key == "parameters"; }

// Reads the beginning of an object piece by piece. Each function is false if the text ends first;
// what stands there instead of what was wanted makes it `is_other`.
struct HeadReader {
  std::string_view text;
  size_t at = 0;
  bool is_other = false;

  bool skip_space() {
    while (at < text.size() && is_json_space(text[at])) ++at;
    return at < text.size();
  }

  bool take(char c) {
    if (!skip_space()) return false;
    is_other = text[at] != c;
    if (!is_other) ++at;
    return !is_other;
  }

  bool take_string(std::string& out) {
    if (!take('"')) return false;
    const size_t begin = at - 1;
    for (; at < text.size(); ++at) {
      if (text[at] == '\\') {
        ++at;
      } else if (text[at] == '"') {
        ++at;
        const auto parsed = json::parse(text.substr(begin, at - begin), "a name");
        is_other = !parsed || !parsed->is_string();
        if (!is_other) out = std::string(std::string_view(parsed->get_string()));
        return !is_other;
      }
    }
    return false;
  }
};

}  // namespace

void CallScanner::push(std::string_view text) {
  while (!text.empty()) {
    size_t taken = 0;
    switch (state_) {
      case State::kBetween: taken = take_between(text); break;
      case State::kHead: taken = take_head(text); break;
      case State::kArguments:
      case State::kTail:
      case State::kWhole: taken = take_value(text); break;
      case State::kText:
        sink_.add_text(text);
        taken = text.size();
        break;
    }
    text.remove_prefix(taken);
  }
}

void CallScanner::finish() {
  if (state_ == State::kArguments || state_ == State::kTail) sink_.end_call();
  if (state_ == State::kHead || state_ == State::kWhole) sink_.add_text(raw_);
  if (state_ == State::kBetween && !has_calls_ && !raw_.empty()) sink_.add_text(raw_);
  state_ = State::kBetween;
  raw_.clear();
  has_calls_ = false;
}

size_t CallScanner::take_between(std::string_view text) {
  const auto is_filler = [](char c) {
    return is_json_space(c) || c == '[' || c == ']' || c == ',' || c == ';';
  };
  size_t i = 0;
  while (i < text.size() && is_filler(text[i])) ++i;
  raw_ += text.substr(0, i);
  if (i == text.size()) return i;
  if (text[i] == '{') {
    raw_.clear();
    state_ = State::kHead;
  } else {
    give_up();
  }
  return i;
}

size_t CallScanner::take_head(std::string_view text) {
  // Only a brace, a quote or a comma can decide it.
  const size_t end = text.find_first_of("{}[]\",");
  const size_t size = end == text.npos ? text.size() : end + 1;
  raw_ += text.substr(0, size);
  Head head = read_head();
  if (head.verdict == Verdict::kUnknown && raw_.size() > kMaxHeadSize) {
    head.verdict = Verdict::kNoCall;
  }
  switch (head.verdict) {
    case Verdict::kUnknown: break;
    case Verdict::kNoCall: give_up(); break;
    case Verdict::kOther: {
      state_ = State::kWhole;
      depth_ = 0;
      is_in_string_ = is_escaped_ = false;
      const std::string raw = std::exchange(raw_, {});
      push(raw);
      break;
    }
    case Verdict::kCall:
      raw_.clear();
      begin_call(head.name);
      state_ = head.arguments_begin > 0 ? State::kArguments : State::kBetween;
      depth_ = 1;
      is_in_string_ = is_escaped_ = false;
      sink_.add_arguments(head.arguments_begin > 0 ? "{" : "{}");
      if (head.arguments_begin == 0) sink_.end_call();
  }
  return size;
}

CallScanner::Head CallScanner::read_head() const {
  HeadReader reader{.text = raw_};
  Head head;
  std::string key;
  const auto otherwise = [&](Verdict verdict) {
    if (reader.is_other) head.verdict = verdict;
    return head;
  };
  if (!reader.take('{') || !reader.take_string(key)) return otherwise(Verdict::kNoCall);
  if (key != "name") {
    const bool may_be_call =
        is_arguments_key(key) || key == "type" || key == "function" || key == "id";
    head.verdict = may_be_call ? Verdict::kOther : Verdict::kNoCall;
    return head;
  }
  if (!reader.take(':') || !reader.take_string(head.name)) return otherwise(Verdict::kNoCall);
  if (!is_declared(head.name)) {
    head.verdict = Verdict::kNoCall;
    return head;
  }
  if (!reader.skip_space()) return head;
  if (reader.text[reader.at] == '}') {
    head.verdict = Verdict::kCall;
    return head;
  }
  if (!reader.take(',') || !reader.take_string(key)) return otherwise(Verdict::kNoCall);
  if (!is_arguments_key(key)) {
    head.verdict = Verdict::kOther;
    return head;
  }
  if (!reader.take(':') || !reader.take('{')) return otherwise(Verdict::kOther);
  head.arguments_begin = reader.at - 1;
  head.verdict = Verdict::kCall;
  return head;
}

// Takes up to the end of the value: where the brackets that it opens are closed, and for the rest
// of a call, where its own brace closes.
size_t CallScanner::take_value(std::string_view text) {
  size_t i = 0;
  bool has_ended = false;
  while (i < text.size() && !has_ended) {
    const char c = text[i++];
    if (is_in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (c == '\\') {
        is_escaped_ = true;
      } else if (c == '"') {
        is_in_string_ = false;
      }
    } else if (c == '"') {
      is_in_string_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if (c == '}' || c == ']') {
      has_ended = --depth_ <= 0;
    }
  }
  if (state_ == State::kArguments) sink_.add_arguments(text.substr(0, i));
  if (state_ == State::kWhole) raw_ += text.substr(0, i);
  if (has_ended) end_value();
  return i;
}

void CallScanner::end_value() {
  switch (state_) {
    case State::kArguments:
      state_ = State::kTail;
      depth_ = 1;  // the call's own brace
      break;
    case State::kTail:
      state_ = State::kBetween;
      sink_.end_call();
      break;
    case State::kWhole: end_whole(); break;
    default: CHECK(false, "a value ends in state {}", static_cast<int>(state_));
  }
}

// An object whose name does not come first. What its arguments look like is not known any more, so
// they are written anew.
void CallScanner::end_whole() {
  const auto parsed = json::parse(raw_, "a call");
  const bj::object* object = parsed ? parsed->if_object() : nullptr;
  if (object != nullptr) {
    const bj::value* inner = object->if_contains("function");
    if (inner != nullptr && inner->is_object()) object = &inner->get_object();
  }
  const bj::value* name = object != nullptr ? object->if_contains("name") : nullptr;
  if (name == nullptr || !name->is_string() || !is_declared(name->get_string())) return give_up();
  const bj::value* arguments = object->if_contains("arguments");
  if (arguments == nullptr) arguments = object->if_contains("parameters");
  begin_call(name->get_string());
  if (arguments == nullptr || arguments->is_null()) {
    sink_.add_arguments("{}");
  } else if (const bj::string* text = arguments->if_string()) {
    sink_.add_arguments(*text);  // JSON within a string, as OpenAI's API has it
  } else {
    sink_.add_arguments(compact_json(*arguments));
  }
  sink_.end_call();
  raw_.clear();
  state_ = State::kBetween;
}

void CallScanner::begin_call(std::string_view name) {
  has_calls_ = true;
  sink_.begin_call(name);
}

void CallScanner::give_up() {
  state_ = State::kText;
  if (!raw_.empty()) sink_.add_text(std::exchange(raw_, {}));
}

bool CallScanner::is_declared(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

}  // namespace briar
