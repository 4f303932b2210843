// Typed reading of a Hugging Face model folder's config.json and generation_config.json.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace briar {

// Inclusive.
struct IntRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};
// As `min`: every number above zero.
inline constexpr double kAboveZero = std::numeric_limits<double>::min();
struct FloatRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
};

// The names under which files spell one setting: "hidden_size", or {"num_local_experts",
// "num_experts"}. If a file has several of them they must agree.
class ConfigKeys {
 public:
  ConfigKeys(const char* name) : names_{name} {}                           // NOLINT: implicit
  ConfigKeys(std::initializer_list<const char*> names) : names_(names) {}  // NOLINT: implicit
  const std::vector<const char*>& names() const { return names_; }

 private:
  std::vector<const char*> names_;
};

// One JSON object of a configuration file. The accessors throw UserError; their messages name file,
// key and the value found. A key whose value is null counts as absent. Copies share the document.
class HfConfig {
 public:
  // `model`/config.json, or what the metadata of the GGUF file `model` says in its words.
  static Result<HfConfig> open(const std::string& model);
  static Result<HfConfig> open_file(const std::string& path);
  static Result<HfConfig> parse(std::string_view text, const std::string& source);

  const std::string& file() const { return file_; }
  bool has(const ConfigKeys& keys) const { return find(keys).value != nullptr; }
  // The keys of this object, in the file's order.
  std::vector<std::string> keys() const;

  int64_t integer(const ConfigKeys& keys, IntRange range) const;
  std::optional<int64_t> find_integer(const ConfigKeys& keys, IntRange range) const;
  int64_t integer_or(const ConfigKeys& keys, int64_t otherwise, IntRange range) const;

  // Integers are accepted where a real number is asked for.
  double real(const ConfigKeys& keys, FloatRange range) const;
  std::optional<double> find_real(const ConfigKeys& keys, FloatRange range) const;
  double real_or(const ConfigKeys& keys, double otherwise, FloatRange range) const;

  bool boolean(const ConfigKeys& keys) const;
  bool boolean_or(const ConfigKeys& keys, bool otherwise) const;

  std::string string(const ConfigKeys& keys) const;
  std::optional<std::string> find_string(const ConfigKeys& keys) const;
  std::string string_or(const ConfigKeys& keys, std::string otherwise) const;

  std::vector<std::string> strings(const ConfigKeys& keys) const;
  // A list, or a single integer for a list of one. Absent: empty.
  std::vector<int64_t> integers(const ConfigKeys& keys, IntRange range) const;

  std::vector<double> reals(const ConfigKeys& keys, FloatRange range) const;

  // A nested object; absent where there is none.
  std::optional<HfConfig> section(const ConfigKeys& keys) const;

  // Throws "<file>: <key> is <value>, <why>": for checks that span several keys.
  [[noreturn]] void fail(const ConfigKeys& keys, std::string_view why) const;

 private:
  struct Found {
    const boost::json::value* value = nullptr;
    const char* name = nullptr;
  };
  HfConfig() = default;
  Found find(const ConfigKeys& keys) const;
  Found require(const ConfigKeys& keys) const;
  [[noreturn]] void fail_value(const char* name, const boost::json::value& value,
                               std::string_view why) const;
  int64_t to_integer(const char* name, const boost::json::value& value, IntRange range) const;
  double to_real(const Found& found, FloatRange range) const;

  std::shared_ptr<const boost::json::value> document_;
  const boost::json::object* object_ = nullptr;  // inside document_
  std::string file_;
  std::string prefix_;  // "rope_scaling." in a section
};

// What generation_config.json says about ending and sampling. Absent means the file is silent.
struct GenerationConfig {
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> bos_token_id;
  std::optional<int64_t> pad_token_id;
  bool do_sample = false;
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<int64_t> top_k;

  // Reads `model`/generation_config.json. The special ids it lacks (all, if there is no such file,
  // as beside a GGUF file) come from `config`. Ids must lie below the config's vocab_size where it
  // has one.
  static Result<GenerationConfig> open(const std::string& model, const HfConfig& config);
};

}  // namespace briar
