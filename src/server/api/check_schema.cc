#include "server/api/check_schema.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <string_view>

#include "server/api/fields.h"

namespace briar {
namespace {

namespace bj = boost::json;

Error schema_error(const std::string& path, std::string_view what) {
  Error error = make_error("'{}' {}", path, what);
  error.param = path;
  return error;
}

bool is_type_word(const bj::value& value) {
  constexpr std::array<std::string_view, 7> kTypes = {"object",  "array",   "string", "number",
                                                      "integer", "boolean", "null"};
  return value.is_string() && std::find(kTypes.begin(), kTypes.end(),
                                        std::string_view(value.get_string())) != kTypes.end();
}

bool is_type(const bj::value& value) {
  if (!value.is_array()) return is_type_word(value);
  return std::all_of(value.get_array().begin(), value.get_array().end(), is_type_word);
}

// Not a regex parser: brackets that do not close and a lone backslash are what goes wrong.
bool is_plausible_pattern(std::string_view pattern) {
  int depth = 0;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    switch (pattern[i]) {
      case '\\':
        if (++i == pattern.size()) return false;
        break;
      case '[': in_class = true; break;
      case ']': in_class = false; break;
      case '(': depth += in_class ? 0 : 1; break;
      case ')':
        if (!in_class && --depth < 0) return false;
        break;
      default: break;
    }
  }
  return depth == 0 && !in_class;
}

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_count(const bj::value& value) {
  bj::error_code code;
  return value.is_number() && value.to_number<int64_t>(code) >= 0 && !code;
}

bool is_text_list(const bj::value& value) {
  return value.is_array() && std::all_of(value.get_array().begin(), value.get_array().end(),
                                         [](const bj::value& item) { return item.is_string(); });
}

// The keywords whose value is plain; empty if it is fine.
std::string_view fault_of(std::string_view key, const bj::value& value) {
  if (key == "type" && !is_type(value)) return "is not a type of JSON schema";
  if (key == "pattern" && (!value.is_string() || !is_plausible_pattern(value.get_string()))) {
    return "is not a regular expression";
  }
  if (key == "enum" && (!value.is_array() || value.get_array().empty())) {
    return "must be a list that is not empty";
  }
  if (key == "required" && !is_text_list(value)) return "must be a list of strings";
  if (is_one_of(key, {"minimum", "maximum", "multipleOf"}) && !value.is_number()) {
    return "must be a number";
  }
  if (is_one_of(key, {"exclusiveMinimum", "exclusiveMaximum"}) && !value.is_number() &&
      !value.is_bool()) {
    return "must be a number";
  }
  if (is_one_of(key, {"minLength", "maxLength", "minItems", "maxItems", "minProperties",
                      "maxProperties"}) &&
      !is_count(value)) {
    return "must be a whole number, 0 or more";
  }
  if (is_one_of(key, {"description", "title", "format", "$ref"}) && !value.is_string()) {
    return "must be a string";
  }
  if (is_one_of(key, {"properties", "$defs", "definitions", "patternProperties"}) &&
      !value.is_object()) {
    return "must be an object";
  }
  if (is_one_of(key, {"anyOf", "oneOf", "allOf", "prefixItems"}) && !value.is_array()) {
    return "must be a list of schemas";
  }
  return {};
}

Status check_inside(std::string_view key, const bj::value& value, const std::string& path) {
  if (is_one_of(key, {"properties", "$defs", "definitions", "patternProperties"})) {
    for (const auto& [name, schema] : value.get_object()) {
      if (auto status = check_json_schema(schema, path + "." + std::string(name)); !status) {
        return status;
      }
    }
  } else if (is_one_of(key, {"anyOf", "oneOf", "allOf", "prefixItems"})) {
    for (size_t i = 0; i < value.get_array().size(); ++i) {
      const std::string place = fmt::format("{}[{}]", path, i);
      if (auto status = check_json_schema(value.get_array()[i], place); !status) return status;
    }
  } else if (is_one_of(key, {"items", "additionalProperties", "not"}) && value.is_object()) {
    return check_json_schema(value, path);
  }
  return Ok{};
}

}  // namespace

Status check_json_schema(const bj::value& schema, const std::string& path) {
  if (schema.is_bool()) return Ok{};
  if (!schema.is_object()) return schema_error(path, "is not a JSON schema (an object)");
  for (const auto& [name, value] : schema.get_object()) {
    const std::string_view key(name.data(), name.size());
    if (value.is_null()) continue;
    const std::string place = path + "." + std::string(key);
    if (const std::string_view fault = fault_of(key, value); !fault.empty()) {
      return schema_error(place, fault);
    }
    if (auto status = check_inside(key, value, place); !status) return status;
  }
  return Ok{};
}

}  // namespace briar
