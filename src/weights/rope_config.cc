#include "weights/rope_config.h"

#include <cmath>
#include <string>

#include "weights/hf_config.h"

namespace briar {
namespace {

constexpr FloatRange kPositive = {kAboveZero, 1e18};
constexpr FloatRange kFactor = {1, 1e9};
constexpr IntRange kPositions = {1, int64_t{1} << 40};

RopeKind read_kind(const HfConfig& section) {
  const ConfigKeys keys = {"rope_type", "type"};
  const std::string name = section.string_or(keys, "default");
  for (const RopeKind kind : {RopeKind::kDefault, RopeKind::kLinear, RopeKind::kYarn,
                              RopeKind::kLlama3, RopeKind::kPerPair}) {
    if (name == to_string(kind)) return kind;
  }
  section.fail(keys, "expected default, linear, yarn or llama3");
}

// `section` is rope_scaling or rope_parameters; theta comes from the caller.
RopeScaling read_section(const HfConfig& config, const HfConfig& section) {
  RopeScaling rope;
  rope.kind = read_kind(section);
  if (rope.kind == RopeKind::kDefault) return rope;
  if (rope.kind == RopeKind::kPerPair) {
    rope.divisors = section.reals("divisors", kPositive);
    return rope;
  }
  rope.factor = section.real("factor", kFactor);
  if (rope.kind == RopeKind::kLinear) return rope;
  const ConfigKeys original = "original_max_position_embeddings";
  rope.original_max_position_embeddings =
      section.has(original)
          ? section.integer(original, kPositions)
          : config.integer({"original_max_position_embeddings", "initial_context_length"},
                           kPositions);
  if (rope.kind == RopeKind::kLlama3) {
    rope.low_freq_factor = section.real("low_freq_factor", kPositive);
    rope.high_freq_factor = section.real("high_freq_factor", kPositive);
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      section.fail("high_freq_factor", "expected more than low_freq_factor");
    }
    return rope;
  }
  rope.beta_fast = section.real_or("beta_fast", rope.beta_fast, kPositive);
  rope.beta_slow = section.real_or("beta_slow", rope.beta_slow, kPositive);
  if (rope.beta_fast <= rope.beta_slow) section.fail("beta_fast", "expected more than beta_slow");
  rope.truncate = section.boolean_or("truncate", rope.truncate);
  rope.attention_factor = section.find_real("attention_factor", kPositive);
  rope.mscale = section.find_real("mscale", kPositive);
  rope.mscale_all_dim = section.find_real("mscale_all_dim", FloatRange{0, 1e18});
  return rope;
}

double read_theta(const HfConfig& config, const std::optional<HfConfig>& section,
                  std::optional<double> default_theta) {
  const auto outer = config.find_real("rope_theta", kPositive);
  std::optional<double> inner;
  if (section) inner = section->find_real("rope_theta", kPositive);
  if (outer && inner && *outer != *inner) {
    config.fail("rope_theta", fmt::format("but rope_parameters.rope_theta is {}", *inner));
  }
  if (inner) return *inner;
  if (outer) return *outer;
  return default_theta ? *default_theta : config.real("rope_theta", kPositive);
}

RopeScaling finish(const HfConfig& config, const std::optional<HfConfig>& section,
                   std::optional<double> default_theta) {
  RopeScaling rope = section ? read_section(config, *section) : RopeScaling{};
  rope.theta = read_theta(config, section, default_theta);
  const ConfigKeys partial = "partial_rotary_factor";
  const bool is_inner = section && section->has(partial);
  rope.partial_rotary_factor = (is_inner ? *section : config).real_or(partial, 1, {kAboveZero, 1});
  return rope;
}

// transformers v5 can hold one set of parameters a layer type: {"full_attention": {...}, ...}.
// Layers with different frequencies would need one table each, which no model of ours has.
RopeScaling read_parameters(const HfConfig& config, const HfConfig& section,
                            std::optional<double> default_theta) {
  std::optional<RopeScaling> common;
  std::string first;
  for (const std::string& key : section.keys()) {
    if (!key.ends_with("_attention")) continue;
    const RopeScaling rope = finish(config, section.section(key.c_str()), default_theta);
    if (common && *common != rope) {
      section.fail(key.c_str(),
                   fmt::format("but {} has other parameters, which is not supported", first));
    }
    if (!common) first = key;
    common = rope;
  }
  return common ? *common : finish(config, section, default_theta);
}

// OpenAI's own file: alpha bounds the slow, beta the fast rotations.
RopeScaling read_original(const HfConfig& config, std::optional<double> default_theta) {
  RopeScaling rope = finish(config, std::nullopt, default_theta);
  rope.kind = RopeKind::kYarn;
  rope.factor = config.real("rope_scaling_factor", kFactor);
  rope.original_max_position_embeddings = config.integer("initial_context_length", kPositions);
  rope.beta_slow = config.real("rope_ntk_alpha", kPositive);
  rope.beta_fast = config.real("rope_ntk_beta", kPositive);
  rope.truncate = false;
  return rope;
}

double mscale_of(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

}  // namespace

const char* to_string(RopeKind kind) {
  constexpr const char* kNames[] = {"default", "linear", "yarn", "llama3", "per_pair"};
  return kNames[static_cast<size_t>(kind)];
}

double RopeScaling::attention_scale() const {
  if (kind != RopeKind::kYarn) return 1;
  if (attention_factor) return *attention_factor;
  if (mscale && mscale_all_dim && *mscale_all_dim != 0) {
    return mscale_of(factor, *mscale) / mscale_of(factor, *mscale_all_dim);
  }
  return mscale_of(factor, 1);
}

RopeScaling read_rope(const HfConfig& config, std::optional<double> default_theta) {
  const auto scaling = config.section("rope_scaling");
  const auto parameters = config.section("rope_parameters");
  if (!parameters) {
    if (!scaling && config.has("rope_scaling_factor")) return read_original(config, default_theta);
    return finish(config, scaling, default_theta);
  }
  const RopeScaling rope = read_parameters(config, *parameters, default_theta);
  if (scaling && finish(config, scaling, rope.theta) != rope) {
    config.fail("rope_scaling", "but rope_parameters says otherwise");
  }
  return rope;
}

RopeScaling read_rope_of_kind(const HfConfig& config, RopeKind kind) {
  const RopeScaling rope = read_rope(config);
  if (rope.kind == kind) return rope;
  const char* found = to_string(rope.kind);
  throw_user_error(
      "{}: the rope scaling is {}, but this model needs {} (in rope_scaling or rope_parameters)",
      config.file(), rope.kind == RopeKind::kDefault ? "missing" : found, to_string(kind));
}

}  // namespace briar
