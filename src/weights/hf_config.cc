#include "weights/hf_config.h"

#include <boost/json.hpp>
#include <cmath>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "weights/gguf_model.h"
#include "weights/printable.h"

namespace briar {
namespace {

namespace bj = boost::json;

std::string join(const ConfigKeys& keys) {
  std::string text;
  for (const char* name : keys.names()) text += (text.empty() ? "" : " or ") + std::string(name);
  return text;
}

std::string range_text(IntRange range) {
  return fmt::format("an integer from {} to {}", range.min, range.max);
}

std::string range_text(FloatRange range) {
  if (range.min == kAboveZero) return fmt::format("a number above 0, at most {}", range.max);
  return fmt::format("a number from {} to {}", range.min, range.max);
}

// Boost writes 0.5 as 5E-1.
std::string value_text(const bj::value& value) {
  if (value.is_double()) return fmt::format("{}", value.get_double());
  return printable(bj::serialize(value), 80);
}

// 32 and 32.0 are one setting; everything else is compared as JSON.
bool agree(const bj::value& a, const bj::value& b) {
  if (a.is_number() && b.is_number()) return a.to_number<double>() == b.to_number<double>();
  return a == b;
}

}  // namespace

Result<HfConfig> HfConfig::open(const std::string& model) {
  if (!is_model_file(model)) return open_file(model + "/config.json");
  const auto gguf = GgufFile::open(model);
  if (!gguf) return gguf.error();
  return gguf_config(gguf->contents());
}

Result<HfConfig> HfConfig::open_file(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  return parse(file->text(), path);
}

Result<HfConfig> HfConfig::parse(std::string_view text, const std::string& source) {
  auto document = json::parse(text, source);
  if (!document) return document.error();
  HfConfig config;
  config.document_ = std::make_shared<const bj::value>(*std::move(document));
  config.object_ = config.document_->if_object();
  config.file_ = source;
  if (config.object_ == nullptr) {
    return make_error("{}: {}, not a JSON object", source, value_text(*config.document_));
  }
  return config;
}

std::vector<std::string> HfConfig::keys() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : *object_) names.emplace_back(key);
  return names;
}

HfConfig::Found HfConfig::find(const ConfigKeys& keys) const {
  Found found;
  for (const char* name : keys.names()) {
    const bj::value* value = object_->if_contains(name);
    if (value == nullptr || value->is_null()) continue;
    if (found.value != nullptr && !agree(*found.value, *value)) {
      fail_value(name, *value, fmt::format("but {} is {}", found.name, value_text(*found.value)));
    }
    if (found.value == nullptr) found = {value, name};
  }
  return found;
}

HfConfig::Found HfConfig::require(const ConfigKeys& keys) const {
  const Found found = find(keys);
  if (found.value == nullptr) throw_user_error("{}: {}{} is missing", file_, prefix_, join(keys));
  return found;
}

void HfConfig::fail_value(const char* name, const bj::value& value, std::string_view why) const {
  throw_user_error("{}: {}{} is {}, {}", file_, prefix_, printable(name), value_text(value), why);
}

void HfConfig::fail(const ConfigKeys& keys, std::string_view why) const {
  const Found found = require(keys);
  fail_value(found.name, *found.value, why);
}

int64_t HfConfig::to_integer(const char* name, const bj::value& value, IntRange range) const {
  // A uint64 lies above every range.
  const int64_t* number = value.if_int64();
  if (number == nullptr || *number < range.min || *number > range.max) {
    fail_value(name, value, "expected " + range_text(range));
  }
  return *number;
}

int64_t HfConfig::integer(const ConfigKeys& keys, IntRange range) const {
  const Found found = require(keys);
  return to_integer(found.name, *found.value, range);
}

std::optional<int64_t> HfConfig::find_integer(const ConfigKeys& keys, IntRange range) const {
  const Found found = find(keys);
  if (found.value == nullptr) return std::nullopt;
  return to_integer(found.name, *found.value, range);
}

int64_t HfConfig::integer_or(const ConfigKeys& keys, int64_t otherwise, IntRange range) const {
  return find_integer(keys, range).value_or(otherwise);
}

double HfConfig::to_real(const Found& found, FloatRange range) const {
  const double number = found.value->is_number() ? found.value->to_number<double>() : NAN;
  if (!(number >= range.min && number <= range.max)) {
    fail_value(found.name, *found.value, "expected " + range_text(range));
  }
  return number;
}

double HfConfig::real(const ConfigKeys& keys, FloatRange range) const {
  return to_real(require(keys), range);
}

std::optional<double> HfConfig::find_real(const ConfigKeys& keys, FloatRange range) const {
  const Found found = find(keys);
  if (found.value == nullptr) return std::nullopt;
  return to_real(found, range);
}

double HfConfig::real_or(const ConfigKeys& keys, double otherwise, FloatRange range) const {
  return find_real(keys, range).value_or(otherwise);
}

bool HfConfig::boolean(const ConfigKeys& keys) const {
  const Found found = require(keys);
  if (!found.value->is_bool()) fail_value(found.name, *found.value, "expected true or false");
  return found.value->get_bool();
}

bool HfConfig::boolean_or(const ConfigKeys& keys, bool otherwise) const {
  return has(keys) ? boolean(keys) : otherwise;
}

std::string HfConfig::string(const ConfigKeys& keys) const {
  const Found found = require(keys);
  if (!found.value->is_string()) fail_value(found.name, *found.value, "expected a string");
  return std::string(found.value->get_string());
}

std::optional<std::string> HfConfig::find_string(const ConfigKeys& keys) const {
  if (!has(keys)) return std::nullopt;
  return string(keys);
}

std::string HfConfig::string_or(const ConfigKeys& keys, std::string otherwise) const {
  return has(keys) ? string(keys) : std::move(otherwise);
}

std::vector<std::string> HfConfig::strings(const ConfigKeys& keys) const {
  const Found found = require(keys);
  std::vector<std::string> out;
  const bj::array* list = found.value->if_array();
  if (list == nullptr) fail_value(found.name, *found.value, "expected a list of strings");
  for (const bj::value& value : *list) {
    if (!value.is_string()) {
      fail_value(fmt::format("{}[{}]", found.name, out.size()).c_str(), value, "expected a string");
    }
    out.emplace_back(value.get_string());
  }
  return out;
}

std::vector<int64_t> HfConfig::integers(const ConfigKeys& keys, IntRange range) const {
  const Found found = find(keys);
  if (found.value == nullptr) return {};
  const bj::array* list = found.value->if_array();
  if (list == nullptr) return {to_integer(found.name, *found.value, range)};
  std::vector<int64_t> out;
  for (const bj::value& value : *list) {
    const std::string name = fmt::format("{}[{}]", found.name, out.size());
    out.push_back(to_integer(name.c_str(), value, range));
  }
  return out;
}

std::vector<double> HfConfig::reals(const ConfigKeys& keys, FloatRange range) const {
  const Found found = require(keys);
  const bj::array* list = found.value->if_array();
  if (list == nullptr) fail_value(found.name, *found.value, "expected a list of numbers");
  std::vector<double> out;
  for (const bj::value& value : *list) {
    const std::string name = fmt::format("{}[{}]", found.name, out.size());
    out.push_back(to_real({&value, name.c_str()}, range));
  }
  return out;
}

std::optional<HfConfig> HfConfig::section(const ConfigKeys& keys) const {
  const Found found = find(keys);
  if (found.value == nullptr) return std::nullopt;
  HfConfig inner = *this;
  inner.object_ = found.value->if_object();
  if (inner.object_ == nullptr) fail_value(found.name, *found.value, "expected an object");
  inner.prefix_ = prefix_ + found.name + ".";
  return inner;
}

namespace {

// A negative id is how some files spell "none".
std::optional<int64_t> special_id(const HfConfig& file, const HfConfig& config, const char* key,
                                  int64_t last_id) {
  const HfConfig& source = file.has(key) ? file : config;
  const auto id = source.find_integer(key, {-1, last_id});
  return id && *id >= 0 ? id : std::nullopt;
}

GenerationConfig read_generation(const HfConfig& file, const HfConfig& config) {
  constexpr int64_t kMaxIds = int64_t{1} << 31;
  const int64_t last_id = config.integer_or("vocab_size", kMaxIds, {1, kMaxIds}) - 1;
  const ConfigKeys eos = "eos_token_id";
  GenerationConfig out;
  out.eos_token_ids = (file.has(eos) ? file : config).integers(eos, {0, last_id});
  out.bos_token_id = special_id(file, config, "bos_token_id", last_id);
  out.pad_token_id = special_id(file, config, "pad_token_id", last_id);
  out.do_sample = file.boolean_or("do_sample", false);
  out.temperature = file.find_real("temperature", {0, 100});
  out.top_p = file.find_real("top_p", {0, 1});
  out.min_p = file.find_real("min_p", {0, 1});
  out.top_k = file.find_integer("top_k", {-1, kMaxIds});
  return out;
}

}  // namespace

Result<GenerationConfig> GenerationConfig::open(const std::string& model, const HfConfig& config) {
  const std::string path = model + "/generation_config.json";
  auto file = file_exists(path) ? HfConfig::open_file(path) : HfConfig::parse("{}", path);
  if (!file) return file.error();
  try {
    return read_generation(*file, config);
  } catch (const UserError& e) {
    return e.error;
  }
}

}  // namespace briar
