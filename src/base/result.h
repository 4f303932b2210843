// Result<T>: a value, or an Error that is the user's or the input's fault. The command line prints
// its message in one line and exits with 1; the server formats it as OpenAI error JSON.
#pragma once

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace briar {

// `message` is one line that says what is wrong, where, and with which values. `param` names the
// request field or flag at fault, if there is one. `http_status` is what the server answers, and
// `code` is the word for programs in its error JSON, such as model_not_found.
struct Error {
  std::string message;
  std::string param = {};
  int http_status = 400;
  std::string code = {};
};

template <class... Args>
Error make_error(fmt::format_string<Args...> text, Args&&... args) {
  return Error{.message = fmt::format(text, std::forward<Args>(args)...)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    CHECK(ok(), "value() of a failed Result: {}", error().message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    CHECK(ok(), "value() of a failed Result: {}", error().message);
    return std::get<0>(state_);
  }
  T&& value() && {
    CHECK(ok(), "value() of a failed Result: {}", error().message);
    return std::get<0>(std::move(state_));
  }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

// Success without a value.
struct Ok {};
using Status = Result<Ok>;

// A user's error where a return value would have to cross many frames (loading a model, reading a
// configuration). main() and the engine's load() catch it; nothing else throws it across a thread.
struct UserError : std::runtime_error {
  explicit UserError(Error e) : std::runtime_error(e.message), error(std::move(e)) {}
  Error error;
};

template <class... Args>
[[noreturn]] void throw_user_error(fmt::format_string<Args...> text, Args&&... args) {
  throw UserError(Error{.message = fmt::format(text, std::forward<Args>(args)...)});
}

}  // namespace briar
