// A small validator of JSON schemas that knows nothing of grammars, for tests.
#pragma once

#include <boost/json.hpp>
#include <cmath>
#include <regex>
#include <string>

namespace briar::grammar_test {

namespace bj = boost::json;

inline bool has_type(const bj::value& value, std::string_view type) {
  if (type == "integer") {
    return value.is_int64() || value.is_uint64() ||
           (value.is_double() && std::nearbyint(value.get_double()) == value.get_double());
  }
  return (type == "null" && value.is_null()) || (type == "boolean" && value.is_bool()) ||
         (type == "number" && value.is_number()) || (type == "string" && value.is_string()) ||
         (type == "array" && value.is_array()) || (type == "object" && value.is_object());
}

inline size_t count_characters(std::string_view text) {
  size_t n = 0;
  for (const char c : text) n += (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  return n;
}

class SchemaValidator {
 public:
  explicit SchemaValidator(const bj::value& root) : root_(root) {}

  bool is_valid(const bj::value& value) const { return is_valid(value, root_); }

 private:
  bool is_valid(const bj::value& value, const bj::value& schema) const {
    if (schema.is_bool()) return schema.get_bool();
    const bj::object& s = schema.get_object();
    if (const auto* ref = s.if_contains("$ref")) {
      const std::string target(ref->get_string());
      boost::system::error_code error;
      const bj::value* found = root_.find_pointer(target.substr(1), error);
      return found != nullptr && is_valid(value, *found);
    }
    return has_allowed_type(value, s) && has_allowed_value(value, s) && is_in_range(value, s) &&
           has_allowed_text(value, s) && has_allowed_items(value, s) &&
           has_allowed_members(value, s) && obeys_combinations(value, s);
  }

  static bool has_allowed_type(const bj::value& value, const bj::object& s) {
    const auto* type = s.if_contains("type");
    if (type == nullptr) return true;
    if (type->is_string()) return has_type(value, type->get_string());
    for (const auto& one : type->get_array()) {
      if (has_type(value, one.get_string())) return true;
    }
    return type->get_array().empty();
  }

  static bool has_allowed_value(const bj::value& value, const bj::object& s) {
    if (const auto* only = s.if_contains("const"); only != nullptr && *only != value) return false;
    const auto* values = s.if_contains("enum");
    if (values == nullptr) return true;
    for (const auto& one : values->get_array()) {
      if (one == value) return true;
    }
    return false;
  }

  static bool is_in_range(const bj::value& value, const bj::object& s) {
    if (!value.is_number()) return true;
    const double x = value.to_number<double>();
    const auto bound = [&](const char* key) {
      const auto* b = s.if_contains(key);
      return b == nullptr ? std::nan("") : b->to_number<double>();
    };
    if (const double multiple = bound("multipleOf"); multiple > 0) {
      if (std::fmod(x, multiple) != 0) return false;
    }
    return !(x < bound("minimum")) && !(x > bound("maximum")) &&
           !(x <= bound("exclusiveMinimum")) && !(x >= bound("exclusiveMaximum"));
  }

  static bool is_count(const bj::object& s, const char* low, const char* high, size_t n) {
    const auto* min = s.if_contains(low);
    const auto* max = s.if_contains(high);
    return (min == nullptr || n >= min->to_number<size_t>()) &&
           (max == nullptr || n <= max->to_number<size_t>());
  }

  static bool has_allowed_text(const bj::value& value, const bj::object& s) {
    if (!value.is_string()) return true;
    const std::string text(value.get_string());
    if (!is_count(s, "minLength", "maxLength", count_characters(text))) return false;
    const auto* pattern = s.if_contains("pattern");
    return pattern == nullptr ||
           std::regex_search(text, std::regex(std::string(pattern->get_string())));
  }

  bool has_allowed_items(const bj::value& value, const bj::object& s) const {
    if (!value.is_array()) return true;
    const bj::array& items = value.get_array();
    if (!is_count(s, "minItems", "maxItems", items.size())) return false;
    size_t begin = 0;
    if (const auto* prefix = s.if_contains("prefixItems")) {
      for (; begin < items.size() && begin < prefix->get_array().size(); ++begin) {
        if (!is_valid(items[begin], prefix->get_array()[begin])) return false;
      }
    }
    const auto* rest = s.if_contains("items");
    for (size_t i = begin; rest != nullptr && i < items.size(); ++i) {
      if (!is_valid(items[i], *rest)) return false;
    }
    return true;
  }

  bool has_allowed_members(const bj::value& value, const bj::object& s) const {
    if (!value.is_object()) return true;
    const bj::object& object = value.get_object();
    if (!is_count(s, "minProperties", "maxProperties", object.size())) return false;
    if (const auto* required = s.if_contains("required")) {
      for (const auto& name : required->get_array()) {
        if (!object.contains(name.get_string())) return false;
      }
    }
    for (const auto& [name, member] : object) {
      if (!is_allowed_member(name, member, s)) return false;
    }
    return true;
  }

  bool is_allowed_member(std::string_view name, const bj::value& member,
                         const bj::object& s) const {
    if (const auto* names = s.if_contains("propertyNames")) {
      if (!is_valid(bj::value(name), *names)) return false;
    }
    bool is_known = false;
    if (const auto* known = s.if_contains("properties")) {
      if (const auto* schema = known->get_object().if_contains(name)) {
        if (!is_valid(member, *schema)) return false;
        is_known = true;
      }
    }
    if (const auto* patterns = s.if_contains("patternProperties")) {
      for (const auto& [pattern, schema] : patterns->get_object()) {
        if (!std::regex_search(std::string(name), std::regex(std::string(pattern)))) continue;
        if (!is_valid(member, schema)) return false;
        is_known = true;
      }
    }
    const auto* others = s.if_contains("additionalProperties");
    return is_known || others == nullptr || is_valid(member, *others);
  }

  bool obeys_combinations(const bj::value& value, const bj::object& s) const {
    const auto count = [&](const bj::value& list) {
      size_t n = 0;
      for (const auto& one : list.get_array()) n += is_valid(value, one);
      return n;
    };
    const auto* any = s.if_contains("anyOf");
    const auto* one = s.if_contains("oneOf");
    const auto* all = s.if_contains("allOf");
    const auto* no = s.if_contains("not");
    return (any == nullptr || count(*any) > 0) && (one == nullptr || count(*one) == 1) &&
           (all == nullptr || count(*all) == all->get_array().size()) &&
           (no == nullptr || !is_valid(value, *no));
  }

  const bj::value& root_;
};

}  // namespace briar::grammar_test
