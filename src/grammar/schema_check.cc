#include "grammar/schema_check.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <functional>
#include <optional>
#include <set>
#include <string_view>

namespace briar {
namespace {

namespace bj = boost::json;

constexpr std::array<std::string_view, 7> kTypes = {"null",   "boolean", "integer", "number",
                                                    "string", "array",   "object"};
constexpr std::array<std::string_view, 4> kNumbers = {"minimum", "maximum", "exclusiveMinimum",
                                                      "exclusiveMaximum"};
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kCounts = {
    {{"minLength", "maxLength"},
     {"minItems", "maxItems"},
     {"minProperties", "maxProperties"},
     {"minContains", "maxContains"}}};
// One schema each.
constexpr std::array<std::string_view, 10> kSchemas = {"items",
                                                       "additionalProperties",
                                                       "unevaluatedProperties",
                                                       "unevaluatedItems",
                                                       "contains",
                                                       "propertyNames",
                                                       "not",
                                                       "if",
                                                       "then",
                                                       "else"};
constexpr std::array<std::string_view, 4> kSchemaLists = {"anyOf", "oneOf", "allOf", "prefixItems"};
constexpr std::array<std::string_view, 5> kSchemaMaps = {"properties", "patternProperties", "$defs",
                                                         "definitions", "dependentSchemas"};

// Input goes into an error only so far, and without what would break its line.
std::string quoted(std::string_view text) {
  constexpr size_t kMax = 60;
  std::string out = bj::serialize(bj::value(text));
  if (out.size() <= kMax) return out;
  size_t size = kMax;
  while (size > 0 && (static_cast<uint8_t>(out[size]) & 0xC0) == 0x80) --size;
  return out.substr(0, size) + "...";
}

std::string member(const std::string& path, std::string_view key) {
  const bool is_plain =
      !key.empty() && key.size() <= 64 && std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '$' || c == '-';
      });
  return is_plain ? fmt::format("{}.{}", path, key) : fmt::format("{}[{}]", path, quoted(key));
}

std::string element(const std::string& path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

class SchemaChecker {
 public:
  SchemaChecker(const bj::value& root, const SchemaLimits& limits) : root_(root), limits_(limits) {}

  // Throws UserError; check_schema() turns it into a Result.
  void check(bj::value& schema, const std::string& path, int depth) {
    if (depth > limits_.max_depth) {
      throw_user_error("{}: schemas lie more than {} deep in each other", path, limits_.max_depth);
    }
    if (++num_schemas_ > limits_.max_schemas) {
      throw_user_error("{}: more than {} schemas in a schema", path, limits_.max_schemas);
    }
    if (schema.is_bool()) return;
    if (!schema.is_object()) throw_user_error("{}: a schema is an object or true or false", path);
    bj::object& object = schema.get_object();
    check_type(object, path);
    check_enum(object, path);
    check_numbers(object, path);
    check_counts(object, path);
    check_pattern(object, path);
    check_required(object, path);
    check_ref(object, path, depth);
    check_children(object, path, depth);
  }

  std::vector<std::pair<std::string, std::string>> take_patterns() { return std::move(patterns_); }

 private:
  // A list of no types says nothing, and so does a missing one.
  void check_type(bj::object& schema, const std::string& path) {
    const bj::value* type = schema.if_contains("type");
    if (type == nullptr) return;
    const std::string at = member(path, "type");
    if (!type->is_array()) return check_type_name(*type, at);
    const bj::array& types = type->get_array();
    for (size_t i = 0; i < types.size(); ++i) check_type_name(types[i], element(at, i));
    if (types.empty()) schema.erase("type");
  }

  static void check_type_name(const bj::value& type, const std::string& path) {
    if (!type.is_string()) throw_user_error("{}: a type is a string or a list of them", path);
    const std::string_view name = type.get_string();
    if (std::find(kTypes.begin(), kTypes.end(), name) != kTypes.end()) return;
    throw_user_error("{}: {} is no type of JSON", path, quoted(name));
  }

  void check_enum(const bj::object& schema, const std::string& path) {
    const bj::value* values = schema.if_contains("enum");
    if (values == nullptr) return;
    const std::string at = member(path, "enum");
    if (!values->is_array()) throw_user_error("{}: must be a list", at);
    if (values->get_array().empty()) throw_user_error("{}: an empty list allows no value", at);
    num_enum_values_ += values->get_array().size();
    if (num_enum_values_ > limits_.max_enum_values) {
      throw_user_error("{}: more than {} enum values in a schema", at, limits_.max_enum_values);
    }
  }

  static std::optional<double> number(const bj::object& schema, std::string_view key,
                                      const std::string& path) {
    const bj::value* value = schema.if_contains(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) throw_user_error("{}: must be a number", member(path, key));
    return value->to_number<double>();
  }

  static void check_numbers(const bj::object& schema, const std::string& path) {
    for (const std::string_view key : kNumbers) number(schema, key, path);
    const auto minimum = number(schema, "minimum", path);
    const auto maximum = number(schema, "maximum", path);
    if (minimum && maximum && *minimum > *maximum) {
      throw_user_error("{}: minimum {} is above maximum {}", path, *minimum, *maximum);
    }
    const auto multiple = number(schema, "multipleOf", path);
    if (multiple && !(*multiple > 0)) {
      throw_user_error("{}: must be above 0", member(path, "multipleOf"));
    }
  }

  // A whole number may be written 5.0, which XGrammar does not read.
  std::optional<int64_t> count(bj::object& schema, std::string_view key, const std::string& path) {
    const auto value = number(schema, key, path);
    if (!value) return std::nullopt;
    if (!(*value >= 0 && *value <= static_cast<double>(limits_.max_count)) ||
        *value != static_cast<double>(static_cast<int64_t>(*value))) {
      throw_user_error("{}: must be a whole number from 0 to {}", member(path, key),
                       limits_.max_count);
    }
    schema[key] = static_cast<int64_t>(*value);
    return static_cast<int64_t>(*value);
  }

  void check_counts(bj::object& schema, const std::string& path) {
    for (const auto& [low_key, high_key] : kCounts) {
      const auto low = count(schema, low_key, path);
      const auto high = count(schema, high_key, path);
      if (low && high && *low > *high) {
        throw_user_error("{}: {} {} is above {} {}", path, low_key, *low, high_key, *high);
      }
    }
  }

  void check_pattern(const bj::object& schema, const std::string& path) {
    const bj::value* pattern = schema.if_contains("pattern");
    if (pattern == nullptr) return;
    const std::string at = member(path, "pattern");
    if (!pattern->is_string()) throw_user_error("{}: must be a string", at);
    patterns_.emplace_back(at, std::string(pattern->get_string()));
  }

  static void check_required(bj::object& schema, const std::string& path) {
    const bj::value* required = schema.if_contains("required");
    if (required == nullptr) return;
    const std::string at = member(path, "required");
    if (!required->is_array()) throw_user_error("{}: must be a list of names", at);
    const bj::array names = required->get_array();
    for (size_t i = 0; i < names.size(); ++i) {
      if (!names[i].is_string()) throw_user_error("{}: must be a string", element(at, i));
      declare(schema, names[i].get_string(), element(at, i));
    }
  }

  // XGrammar heeds only such required names as `properties` has.
  static void declare(bj::object& schema, std::string_view name, const std::string& path) {
    const bj::value* type = schema.if_contains("type");
    const bj::value* properties = schema.if_contains("properties");
    const bool is_object = type != nullptr ? *type == "object" : properties != nullptr;
    if (!is_object || (properties != nullptr && !properties->is_object())) return;
    if (properties != nullptr && properties->get_object().contains(name)) return;
    const bj::value* others = schema.if_contains("additionalProperties");
    if (others != nullptr && others->is_bool() && !others->get_bool()) {
      throw_user_error("{}: {} is not among the properties, and no others are allowed", path,
                       quoted(name));
    }
    const bj::value value = others != nullptr ? *others : bj::value(bj::object());
    if (properties == nullptr) {
      // The first one would make others that nobody forbade illegal.
      if (others == nullptr) schema["additionalProperties"] = true;
      schema["properties"] = bj::object();
    }
    schema["properties"].get_object()[name] = value;
  }

  void check_ref(const bj::object& schema, const std::string& path, int depth) {
    const bj::value* ref = schema.if_contains("$ref");
    if (ref == nullptr) return;
    const std::string at = member(path, "$ref");
    if (!ref->is_string()) throw_user_error("{}: must be a string", at);
    const std::string_view target = ref->get_string();
    if (target == "#") return;
    if (!target.starts_with("#/")) {
      throw_user_error("{}: {} is not of the form #/path within this schema", at, quoted(target));
    }
    boost::system::error_code error;
    const bj::value* found = root_.find_pointer(target.substr(1), error);
    if (error || found == nullptr) throw_user_error("{}: there is no {}", at, quoted(target));
    if (!refs_.insert(std::string(target)).second) return;
    // A copy, because the target may lie anywhere, under keywords that are no schema's too.
    bj::value copy = *found;
    check(copy, at, depth + 1);
  }

  void check_children(bj::object& schema, const std::string& path, int depth) {
    for (const std::string_view key : kSchemas) {
      if (bj::value* child = schema.if_contains(key)) check(*child, member(path, key), depth + 1);
    }
    for (const std::string_view key : kSchemaLists) {
      bj::value* list = schema.if_contains(key);
      if (list == nullptr) continue;
      const std::string at = member(path, key);
      if (!list->is_array() || list->get_array().empty()) {
        throw_user_error("{}: must be a list of at least one schema", at);
      }
      for (size_t i = 0; i < list->get_array().size(); ++i) {
        check(list->get_array()[i], element(at, i), depth + 1);
      }
    }
    for (const std::string_view key : kSchemaMaps) {
      bj::value* map = schema.if_contains(key);
      if (map == nullptr) continue;
      const std::string at = member(path, key);
      if (!map->is_object()) throw_user_error("{}: must be an object of schemas", at);
      for (auto& [name, child] : map->get_object()) {
        if (key == "patternProperties") patterns_.emplace_back(member(at, name), std::string(name));
        check(child, member(at, name), depth + 1);
      }
    }
  }

  const bj::value& root_;
  const SchemaLimits limits_;
  size_t num_schemas_ = 0;
  size_t num_enum_values_ = 0;
  std::set<std::string, std::less<>> refs_;
  std::vector<std::pair<std::string, std::string>> patterns_;
};

}  // namespace

Result<CheckedSchema> check_schema(const bj::value& schema, const std::string& path,
                                   const SchemaLimits& limits) {
  try {
    bj::value copy = schema;
    SchemaChecker checker(schema, limits);
    checker.check(copy, path, 1);
    CheckedSchema checked{.text = bj::serialize(copy), .patterns = checker.take_patterns()};
    if (checked.text.size() > limits.max_bytes) {
      throw_user_error("{}: a schema of {} bytes, at most {} are allowed", path,
                       checked.text.size(), limits.max_bytes);
    }
    return checked;
  } catch (const UserError& e) {
    return e.error;
  }
}

}  // namespace briar
