#include "server/api/fields.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "base/json.h"

namespace briar {

namespace bj = boost::json;

Fields::Fields(const bj::object& object, std::string path, ReadLog& log)
    : object_(&object), path_(std::move(path)), log_(&log) {}

std::string Fields::path_of(std::string_view key) const {
  if (path_.empty()) return std::string(key);
  return key.empty() ? path_ : path_ + "." + std::string(key);
}

void Fields::note(std::string_view key, std::string message) const {
  if (!ok()) return;
  log_->error = Error{.message = std::move(message), .param = path_of(key)};
}

void Fields::expect(std::string_view key, const bj::value& value, std::string_view what) const {
  fail(key, "'{}' is {}; expected {}", path_of(key), json_kind_word(value), what);
}

const bj::value* Fields::find(std::string_view key) {
  read_.push_back(key);
  if (!ok()) return nullptr;
  const bj::value* value = object_->if_contains(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

void Fields::skip(std::string_view key) { read_.push_back(key); }

std::optional<bool> Fields::boolean(std::string_view key) {
  const bj::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_bool()) return value->get_bool();
  expect(key, *value, "true or false");
  return std::nullopt;
}

std::optional<double> Fields::number(std::string_view key, double min, double max) {
  const bj::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  bj::error_code code;
  const double number = value->is_number() ? value->to_number<double>(code) : NAN;
  if (!value->is_number() || code) {
    expect(key, *value, "a number");
    return std::nullopt;
  }
  if (number >= min && number <= max) return number;
  fail(key, "'{}' is {:g}; expected {:g} to {:g}", path_of(key), number, min, max);
  return std::nullopt;
}

std::optional<int64_t> Fields::integer(std::string_view key, int64_t min, int64_t max) {
  const bj::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) {
    expect(key, *value, "an integer");
    return std::nullopt;
  }
  bj::error_code code;
  const int64_t number = value->to_number<int64_t>(code);  // 2.0 is 2, 1.5 and 1e30 are errors
  if (code) {
    fail(key, "'{}' is not a whole number of 64 bits", path_of(key));
    return std::nullopt;
  }
  if (number >= min && number <= max) return number;
  fail(key, "'{}' is {}; expected {} to {}", path_of(key), number, min, max);
  return std::nullopt;
}

std::optional<std::string> Fields::text(std::string_view key, size_t max_bytes) {
  const bj::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) {
    expect(key, *value, "a string");
    return std::nullopt;
  }
  const bj::string& text = value->get_string();
  if (text.size() > max_bytes) {
    fail(key, "'{}' has {} bytes; at most {} are allowed", path_of(key), text.size(), max_bytes);
    return std::nullopt;
  }
  return std::string(text.data(), text.size());
}

const bj::array* Fields::list(std::string_view key, size_t max_size) {
  const bj::value* value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    expect(key, *value, "a list");
    return nullptr;
  }
  const bj::array& array = value->get_array();
  if (array.size() <= max_size) return &array;
  fail(key, "'{}' has {} elements; at most {} are allowed", path_of(key), array.size(), max_size);
  return nullptr;
}

std::optional<Fields> Fields::object(std::string_view key) {
  const bj::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return Fields(value->get_object(), path_of(key), *log_);
  expect(key, *value, "an object");
  return std::nullopt;
}

std::optional<Fields> Fields::element(std::string_view key, size_t idx,
                                      const bj::value& value) const {
  if (!ok()) return std::nullopt;
  const std::string path = fmt::format("{}[{}]", path_of(key), idx);
  if (value.is_object()) return Fields(value.get_object(), path, *log_);
  log_->error =
      Error{.message = fmt::format("'{}' is {}; expected an object", path, json_kind_word(value)),
            .param = path};
  return std::nullopt;
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view key, size_t max_size,
                                                      size_t max_bytes) {
  const bj::value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) {
    auto one = text(key, max_bytes);
    if (!one) return std::nullopt;
    return std::vector<std::string>{std::move(*one)};
  }
  const bj::array* array = list(key, max_size);
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> out;
  for (const bj::value& item : *array) {
    if (!item.is_string()) {
      fail(key, "'{}[{}]' is {}; expected a string", path_of(key), out.size(),
           json_kind_word(item));
      return std::nullopt;
    }
    if (item.get_string().size() > max_bytes) {
      fail(key, "'{}[{}]' has {} bytes; at most {} are allowed", path_of(key), out.size(),
           item.get_string().size(), max_bytes);
      return std::nullopt;
    }
    out.emplace_back(item.get_string().data(), item.get_string().size());
  }
  return out;
}

std::optional<std::vector<int32_t>> Fields::ids(std::string_view key, size_t max_size,
                                                int64_t num_ids) {
  const bj::array* array = list(key, max_size);
  if (array == nullptr) return std::nullopt;
  std::vector<int32_t> out;
  for (const bj::value& item : *array) {
    bj::error_code code;
    const int64_t id = item.is_number() ? item.to_number<int64_t>(code) : -1;
    if (code || id < 0 || id >= num_ids) {
      fail(key, "'{}[{}]' is not a token id from 0 to {}", path_of(key), out.size(), num_ids - 1);
      return std::nullopt;
    }
    out.push_back(static_cast<int32_t>(id));
  }
  return out;
}

void Fields::note_unread() {
  constexpr size_t kMaxNoted = 32;
  for (const auto& [key, value] : *object_) {
    if (log_->ignored.size() >= kMaxNoted) return;
    const std::string_view name(key.data(), key.size());
    if (std::find(read_.begin(), read_.end(), name) == read_.end()) {
      log_->ignored.push_back(path_of(name));
    }
  }
}

std::string_view json_kind_word(const bj::value& value) {
  switch (value.kind()) {
    case bj::kind::null: return "null";
    case bj::kind::bool_: return "a boolean";
    case bj::kind::int64:
    case bj::kind::uint64:
    case bj::kind::double_: return "a number";
    case bj::kind::string: return "a string";
    case bj::kind::array: return "a list";
    case bj::kind::object: return "an object";
  }
  return "nothing";
}

Result<bj::value> parse_body(std::string_view body, int max_depth) {
  if (body.empty()) return make_error("the request has no body; expected a JSON object");
  auto parsed =
      json::parse(body, "the request body", {.max_bytes = body.size(), .max_depth = max_depth});
  if (!parsed) return parsed.error();
  if (!parsed->is_object()) {
    return make_error("the request body is {}; expected a JSON object", json_kind_word(*parsed));
  }
  return parsed;
}

std::string ignored_fields_header(const std::vector<std::string>& ignored) {
  constexpr size_t kMaxBytes = 512;
  std::string out;
  for (const std::string& name : ignored) {
    if (out.size() + name.size() + 2 > kMaxBytes) return out + (out.empty() ? "..." : ", ...");
    if (!out.empty()) out += ", ";
    for (const char c : name) out += c > 0x20 && c < 0x7f && c != ',' ? c : '?';
  }
  return out;
}

}  // namespace briar
