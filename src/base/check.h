// Checks for our own invariants. A failing check throws CheckError whose text holds the place, the
// expression, both values and the reason; main() turns it into exit code 3 and the engine into a
// failed request. What a user sends never reaches a CHECK: that is what Result (result.h) is for.
#pragma once

#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace briar {

// A broken invariant: a bug of Briar's, never the user's fault.
struct CheckError : std::logic_error {
  using std::logic_error::logic_error;
};

namespace detail {

[[noreturn, gnu::cold]] void check_failed(std::source_location where, const char* expression,
                                          const std::string& values, const std::string& why);

// Values that {fmt} cannot print (enums) appear as their number.
template <class T>
std::string check_value(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return fmt::format("{}", static_cast<long long>(value));
  } else if constexpr (std::is_pointer_v<T>) {
    return fmt::format("{}", static_cast<const void*>(value));
  } else {
    return fmt::format("{}", value);
  }
}

template <class A, class B, class... Args>
[[noreturn, gnu::cold]] void check_op_failed(std::source_location where, const char* expression,
                                             const A& a, const B& b,
                                             fmt::format_string<Args...> why, Args&&... args) {
  check_failed(where, expression, check_value(a) + " vs " + check_value(b),
               fmt::format(why, std::forward<Args>(args)...));
}

}  // namespace detail
}  // namespace briar

// CHECK(condition, "why {}", value) and CHECK_EQ(a, b, "why"): the reason is not optional.
#define CHECK(condition, ...)                                                        \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::briar::detail::check_failed(std::source_location::current(), #condition, "", \
                                    ::fmt::format(__VA_ARGS__));                     \
  } while (false)
#define BRIAR_CHECK_OP_(op, a, b, ...)                                                     \
  do {                                                                                     \
    const auto& check_a_ = (a);                                                            \
    const auto& check_b_ = (b);                                                            \
    if (!(check_a_ op check_b_)) [[unlikely]]                                              \
      ::briar::detail::check_op_failed(std::source_location::current(), #a " " #op " " #b, \
                                       check_a_, check_b_, __VA_ARGS__);                   \
  } while (false)
#define CHECK_EQ(a, b, ...) BRIAR_CHECK_OP_(==, a, b, __VA_ARGS__)
#define CHECK_NE(a, b, ...) BRIAR_CHECK_OP_(!=, a, b, __VA_ARGS__)
#define CHECK_LT(a, b, ...) BRIAR_CHECK_OP_(<, a, b, __VA_ARGS__)
#define CHECK_LE(a, b, ...) BRIAR_CHECK_OP_(<=, a, b, __VA_ARGS__)
#define CHECK_GT(a, b, ...) BRIAR_CHECK_OP_(>, a, b, __VA_ARGS__)
#define CHECK_GE(a, b, ...) BRIAR_CHECK_OP_(>=, a, b, __VA_ARGS__)
