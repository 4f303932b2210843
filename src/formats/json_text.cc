#include "formats/json_text.h"

#include <fmt/core.h>

#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace briar {
namespace {

namespace bj = boost::json;

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<int>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_value(std::string& out, const bj::value& value);

void append_array(std::string& out, const bj::array& array) {
  out += '[';
  for (size_t i = 0; i < array.size(); ++i) {
    if (i > 0) out += ',';
    append_value(out, array[i]);
  }
  out += ']';
}

void append_object(std::string& out, const bj::object& object) {
  out += '{';
  bool is_first = true;
  for (const auto& [key, value] : object) {
    if (!is_first) out += ',';
    is_first = false;
    append_quoted(out, key);
    out += ':';
    append_value(out, value);
  }
  out += '}';
}

void append_value(std::string& out, const bj::value& value) {
  switch (value.kind()) {
    case bj::kind::null: out += "null"; break;
    case bj::kind::bool_: out += value.get_bool() ? "true" : "false"; break;
    case bj::kind::int64: out += std::to_string(value.get_int64()); break;
    case bj::kind::uint64: out += std::to_string(value.get_uint64()); break;
    case bj::kind::double_: out += json_double(value.get_double()); break;
    case bj::kind::string: append_quoted(out, value.get_string()); break;
    case bj::kind::array: append_array(out, value.get_array()); break;
    case bj::kind::object: append_object(out, value.get_object()); break;
  }
}

}  // namespace

std::string compact_json(const bj::value& value) {
  std::string out;
  append_value(out, value);
  return out;
}

std::string json_quote(std::string_view text) {
  std::string out;
  append_quoted(out, text);
  return out;
}

std::string json_double(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0.0) return std::signbit(value) ? "-0.0" : "0.0";
  // to_chars gives the shortest digits, "d.ddde-XX"; the layout below is serde_json's.
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  std::string sign;
  if (text.front() == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(text.substr(0, 1));
  if (e > 1) digits += text.substr(2, e - 2);
  const int num_digits = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits before the decimal point
  if (point > 16 || point <= -5) {
    const std::string fraction = num_digits > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}", sign, digits[0], fraction, exponent);
  }
  if (point <= 0) return sign + "0." + std::string(static_cast<size_t>(-point), '0') + digits;
  if (point >= num_digits) {
    return sign + digits + std::string(static_cast<size_t>(point - num_digits), '0') + ".0";
  }
  return sign + digits.substr(0, static_cast<size_t>(point)) + "." +
         digits.substr(static_cast<size_t>(point));
}

}  // namespace briar
