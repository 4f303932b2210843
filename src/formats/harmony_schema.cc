#include "formats/harmony_schema.h"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <utility>

#include "formats/json_text.h"

namespace briar {
namespace {

namespace bj = boost::json;

// References can make a small schema unfold without bound; past this many types the rest is `any`.
constexpr int kMaxTypes = 4096;

const bj::value* field(const bj::object& object, std::string_view key) {
  return object.if_contains(key);
}

std::optional<std::string_view> string_field(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return std::string_view(value->get_string());
}

const bj::array* array_field(const bj::object& object, std::string_view key) {
  const bj::value* value = object.if_contains(key);
  return value != nullptr ? value->if_array() : nullptr;
}

bool is_required(const bj::object& object, std::string_view key) {
  const bj::array* required = array_field(object, "required");
  return required != nullptr &&
         std::any_of(required->begin(), required->end(), [&](const bj::value& value) {
           return value.is_string() && std::string_view(value.get_string()) == key;
         });
}

std::string_view scalar_type(std::string_view type) { return type == "integer" ? "number" : type; }

std::string join_union(const std::vector<std::string>& types) {
  std::string out;
  for (const std::string& type : types) {
    if (!out.empty()) out += " | ";
    out += type;
  }
  return out;
}

// Text that stands in a comment at the end of a line.
std::string one_line(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return out;
}

class SchemaPrinter {
 public:
  SchemaPrinter(const bj::value& root, bool strict) : root_(root), is_strict_(strict) {}

  std::string type_of(const bj::value& schema, const std::string& indent) {
    const bj::object* object = schema.if_object();
    if (object == nullptr) return "any";
    if (!is_strict_) {
      if (--types_left_ < 0) return "any";
      if (auto text = reference_or_literal(*object, indent)) return std::move(*text);
    }
    if (const bj::array* variants = union_of(*object)) return inline_union(*variants, indent);
    if (const bj::array* types = array_field(*object, "type")) {
      std::string text = type_list(*types, *object, indent);
      if (!text.empty()) return text;
    }
    if (auto type = string_field(*object, "type")) return named_type(*type, *object, indent);
    return is_strict_ ? "any" : untyped(*object, indent);
  }

 private:
  const bj::array* union_of(const bj::object& object) const {
    if (const bj::array* variants = array_field(object, "oneOf")) return variants;
    return is_strict_ ? nullptr : array_field(object, "anyOf");
  }

  // What the library ignores: $ref, const, and enums of any type.
  std::optional<std::string> reference_or_literal(const bj::object& object,
                                                  const std::string& indent) {
    if (auto reference = string_field(object, "$ref")) {
      const bj::value* target = find_reference(*reference);
      const bool is_open = std::find(open_references_.begin(), open_references_.end(), target) !=
                           open_references_.end();
      if (target == nullptr || is_open) return "any";
      open_references_.push_back(target);
      std::string text = type_of(*target, indent);
      open_references_.pop_back();
      return text;
    }
    if (const bj::value* value = field(object, "const")) return compact_json(*value);
    const bj::array* values = array_field(object, "enum");
    if (values == nullptr || values->empty()) return std::nullopt;
    std::vector<std::string> literals;
    for (const bj::value& value : *values) literals.push_back(compact_json(value));
    return join_union(literals);
  }

  // A JSON pointer into the tool's own schema: "#", "#/$defs/X", "#/properties/a/items".
  const bj::value* find_reference(std::string_view reference) const {
    if (!reference.starts_with("#")) return nullptr;
    bj::error_code code;
    const bj::value* target = root_.find_pointer(reference.substr(1), code);
    return code ? nullptr : target;
  }

  std::string type_list(const bj::array& types, const bj::object& object,
                        const std::string& indent) {
    std::vector<std::string> names;
    for (const bj::value& type : types) {
      if (!type.is_string()) continue;
      const std::string_view name = type.get_string();
      std::string text =
          is_strict_ ? std::string(scalar_type(name)) : named_type(name, object, indent);
      if (is_strict_ || std::find(names.begin(), names.end(), text) == names.end()) {
        names.push_back(std::move(text));
      }
    }
    return join_union(names);
  }

  std::string named_type(std::string_view type, const bj::object& object,
                         const std::string& indent) {
    if (type == "object") return object_type(object, indent);
    if (type == "string") return string_type(object);
    if (type == "number" || type == "integer") return "number";
    if (type == "boolean") return "boolean";
    if (type == "array") return array_type(object, indent);
    if (type == "null" && !is_strict_) return "null";
    return "any";
  }

  std::string untyped(const bj::object& object, const std::string& indent) {
    if (field(object, "properties") != nullptr) return object_type(object, indent);
    if (field(object, "items") != nullptr) return array_type(object, indent);
    const bj::array* parts = array_field(object, "allOf");
    if (parts == nullptr || parts->empty()) return "any";
    std::string text;
    for (const bj::value& part : *parts) {
      if (!text.empty()) text += " & ";
      text += type_of(part, indent);
    }
    return text;
  }

  static std::string string_type(const bj::object& object) {
    std::vector<std::string> literals;
    if (const bj::array* values = array_field(object, "enum")) {
      for (const bj::value& value : *values) {
        if (!value.is_string()) continue;
        literals.push_back("\"" + std::string(std::string_view(value.get_string())) + "\"");
      }
    }
    return literals.empty() ? "string" : join_union(literals);
  }

  std::string array_type(const bj::object& object, const std::string& indent) {
    const bj::value* items = field(object, "items");
    if (items == nullptr) return "Array<any>";
    std::string text = type_of(*items, indent);
    if (is_strict_) return text + "[]";
    text = with_null(*items, std::move(text));
    return needs_parentheses(*items) ? "(" + text + ")[]" : text + "[]";
  }

  bool needs_parentheses(const bj::value& schema) const {
    const bj::object* object = schema.if_object();
    for (int hops = 0; object != nullptr && hops < 16; ++hops) {
      const bj::value* nullable = field(*object, "nullable");
      if (nullable != nullptr && *nullable == true) return true;
      if (union_of(*object) != nullptr || array_field(*object, "allOf") != nullptr) return true;
      for (const char* key : {"enum", "type"}) {
        const bj::array* list = array_field(*object, key);
        if (list != nullptr && list->size() > 1) return true;
      }
      auto reference = string_field(*object, "$ref");
      const bj::value* target = reference ? find_reference(*reference) : nullptr;
      object = target != nullptr ? target->if_object() : nullptr;
    }
    return false;
  }

  static std::string with_null(const bj::value& schema, std::string text) {
    const bj::object* object = schema.if_object();
    const bj::value* nullable = object != nullptr ? field(*object, "nullable") : nullptr;
    const bool is_nullable = nullable != nullptr && nullable->is_bool() && nullable->get_bool();
    if (is_nullable && text.find("null") == std::string::npos) text += " | null";
    return text;
  }

  std::string inline_union(const bj::array& variants, const std::string& indent) {
    std::string out;
    for (const bj::value& variant : variants) {
      out += "\n" + indent + " | " + with_null(variant, type_of(variant, indent + "   "));
      const bj::object* object = variant.if_object();
      if (object == nullptr) continue;
      std::vector<std::string> notes;
      if (auto text = string_field(*object, "description")) notes.push_back(note(*text));
      if (const bj::value* value = field(*object, "default")) {
        notes.push_back("default: " + default_text(*value, false));
      }
      out += trailing_comment(notes);
    }
    return out;
  }

  std::string note(std::string_view text) const {
    return is_strict_ ? std::string(text) : one_line(text);
  }

  static std::string trailing_comment(const std::vector<std::string>& notes) {
    std::string out;
    for (const std::string& text : notes) out += (out.empty() ? " // " : " ") + text;
    return out;
  }

  std::string comment(const std::string& indent, std::string_view text) const {
    if (is_strict_) return indent + "// " + std::string(text) + "\n";
    std::string out;
    for (std::string_view line : split_lines(text))
      out += indent + "// " + std::string(line) + "\n";
    return out;
  }

  std::string default_text(const bj::value& value, bool has_enum) const {
    if (!value.is_string()) return compact_json(value);
    const std::string_view text = value.get_string();
    if (is_strict_) return has_enum ? std::string(text) : "\"" + std::string(text) + "\"";
    return has_enum && text.find_first_of("\r\n") == text.npos ? std::string(text)
                                                               : json_quote(text);
  }

  static bool has_enum(const bj::object& object) {
    const bj::array* values = array_field(object, "enum");
    return values != nullptr && !values->empty();
  }

  std::string object_type(const bj::object& object, const std::string& indent) {
    std::string out;
    if (auto text = string_field(object, "description")) out += comment(indent, *text);
    out += "{\n";
    const bj::value* properties = field(object, "properties");
    if (properties != nullptr && properties->is_object()) {
      for (const auto& [key, value] : properties->get_object()) {
        out += property(key, value, is_required(object, key), indent);
      }
    }
    return out + indent + "}";
  }

  std::string property(std::string_view key, const bj::value& schema, bool required,
                       const std::string& indent) {
    static const bj::object kEmpty;
    const bj::object& object = schema.is_object() ? schema.get_object() : kEmpty;
    const bj::array* variants = union_of(object);
    const bool has_union_key = variants != nullptr || field(object, "oneOf") != nullptr;
    const std::string name = std::string(key) + (required ? "" : "?");
    std::string out;
    if (auto title = string_field(object, "title")) {
      out += comment(indent, *title) + indent + "//\n";
    }
    const auto description = string_field(object, "description");
    if (!has_union_key && description) out += comment(indent, *description);
    out += examples(object, indent);
    if (variants != nullptr) return out + union_property(name, object, *variants, indent);
    out += indent + name + ": " + with_null(schema, type_of(schema, indent + "    ")) + ",";
    const bj::value* value = field(object, "default");
    if (value != nullptr && !has_union_key) {
      out += " // default: " + default_text(*value, has_enum(object));
    }
    return out + "\n";
  }

  std::string examples(const bj::object& object, const std::string& indent) const {
    const bj::array* values = array_field(object, "examples");
    if (values == nullptr || values->empty()) return {};
    std::string out = indent + "// Examples:\n";
    for (const bj::value& value : *values) {
      if (!is_strict_) {
        out += indent + "// - " + compact_json(value) + "\n";
      } else if (value.is_string()) {
        out += indent + "// - \"" + std::string(std::string_view(value.get_string())) + "\"\n";
      }
    }
    return out;
  }

  std::string union_property(const std::string& name, const bj::object& object,
                             const bj::array& variants, const std::string& indent) {
    const auto description = string_field(object, "description");
    const bj::object* first = variants.empty() ? nullptr : variants[0].if_object();
    const bool same_as_first =
        first != nullptr && description && string_field(*first, "description") == description;
    const bool is_described = description && !same_as_first;
    std::string out;
    if (is_described) out += comment(indent, *description);
    if (const bj::value* value = field(object, "default")) {
      out += indent + "// default: " + default_text(*value, has_enum(object)) + "\n";
    }
    out += indent + name + ":\n";
    for (size_t i = 0; i < variants.size(); ++i) {
      const bj::value& variant = variants[i];
      out += indent + " | " + with_null(variant, type_of(variant, indent + "   "));
      if (const bj::object* fields = variant.if_object()) {
        const bool hides_description = i == 0 && is_described;
        out += variant_comment(*fields, hides_description, description);
      }
      out += "\n";
    }
    return out + indent + ",\n";
  }

  std::string variant_comment(const bj::object& variant, bool hides_description,
                              std::optional<std::string_view> property_description) const {
    std::vector<std::string> notes;
    const auto text = string_field(variant, "description");
    if (text && !hides_description && text != property_description) notes.push_back(note(*text));
    if (const bj::value* value = field(variant, "default")) {
      notes.push_back("default: " + default_text(*value, has_enum(variant)));
    }
    return trailing_comment(notes);
  }

  const bj::value& root_;
  const bool is_strict_;
  int types_left_ = kMaxTypes;
  std::vector<const bj::value*> open_references_;
};

std::string comment_lines(std::string_view text, std::string_view prefix) {
  std::string out;
  for (std::string_view line : split_lines(text)) {
    out += prefix;
    out += line;
    out += "\n";
  }
  return out;
}

std::string namespace_section(const ToolNamespace& entry, bool strict_library) {
  std::string out = "## " + entry.name + "\n";
  const bool has_tools = !entry.tools.empty();
  if (entry.description) {
    const std::string lines = comment_lines(*entry.description, has_tools ? "// " : "");
    // Sections are joined by newlines; comment_lines() ends with one.
    if (!lines.empty()) out += "\n" + lines.substr(0, lines.size() - 1);
  }
  if (!has_tools) return out;
  out += "\nnamespace " + entry.name + " {\n";
  for (const ToolDefinition& tool : entry.tools) {
    out += "\n" + harmony_tool_declaration(tool, strict_library) + "\n";
  }
  return out + "\n} // namespace " + entry.name;
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (end == text.npos) {
      lines.push_back(line);
      break;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string schema_to_typescript(const bj::value& schema, bool strict_library) {
  return SchemaPrinter(schema, strict_library).type_of(schema, "");
}

std::string harmony_tool_declaration(const ToolDefinition& tool, bool strict_library) {
  std::string out = comment_lines(tool.description, "// ") + "type " + tool.name + " = (";
  if (tool.parameters != nullptr && !tool.parameters->is_null()) {
    out += "_: " + schema_to_typescript(*tool.parameters, strict_library);
  }
  return out + ") => any;";
}

std::string harmony_tools_section(const ToolMap& tools, bool strict_library) {
  std::string out = "# Tools";
  for (const auto& [key, entry] : tools) out += "\n\n" + namespace_section(entry, strict_library);
  return out;
}

}  // namespace briar
