#include "formats/json_text.h"

#include <fmt/core.h>

#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

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

// Python's repr(): the digits of json_double(), but an exponent has a sign and two digits or more,
// and there is one from 1e-5 down, not from 1e-6.
std::string python_double(double value) {
  const std::string text = json_double(value);
  const size_t e = text.find('e');
  if (e == text.npos) {
    constexpr std::string_view kZeros = "0.0000";
    const size_t zeros = text.find(kZeros);
    if (zeros == text.npos || std::abs(value) >= 1e-4 || value == 0) return text;
    const std::string digits = text.substr(zeros + kZeros.size());
    return text.substr(0, zeros) + digits.substr(0, 1) +
           (digits.size() > 1 ? "." + digits.substr(1) : "") + "e-05";
  }
  const int exponent = std::atoi(text.c_str() + e + 1);
  return fmt::format("{}e{}{:02}", text.substr(0, e), exponent < 0 ? '-' : '+', std::abs(exponent));
}

class PythonWriter {
 public:
  explicit PythonWriter(int indent) : indent_(indent) {}

  void write(const bj::value& value) {
    if (const bj::array* array = value.if_array()) {
      write_list('[', ']', *array, [&](const bj::value& item) { write(item); });
    } else if (const bj::object* object = value.if_object()) {
      write_list('{', '}', *object, [&](const bj::key_value_pair& item) {
        append_quoted(out_, item.key());
        out_ += ": ";
        write(item.value());
      });
    } else if (const double* number = value.if_double()) {
      out_ += python_double(*number);
    } else {
      append_value(out_, value);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  template <class List, class WriteItem>
  void write_list(char open, char close, const List& list, WriteItem write_item) {
    out_ += open;
    if (list.empty()) {
      out_ += close;
      return;
    }
    ++depth_;
    bool is_first = true;
    for (const auto& item : list) {
      if (!is_first) out_ += indent_ < 0 ? ", " : ",";
      is_first = false;
      break_line();
      write_item(item);
    }
    --depth_;
    break_line();
    out_ += close;
  }

  void break_line() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_ * depth_), ' ');
  }

  const int indent_;
  int depth_ = 0;
  std::string out_;
};

}  // namespace

std::string python_json(const bj::value& value, int indent) {
  PythonWriter writer(indent);
  writer.write(value);
  return writer.take();
}

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
