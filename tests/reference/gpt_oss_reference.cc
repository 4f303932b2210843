#include "reference/gpt_oss_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "weights/hf_config.h"

namespace briar::reference {
namespace {

constexpr IntRange kSize = {1, 1 << 24};
constexpr FloatRange kPositive = {kAboveZero, 1e18};
constexpr double kSwigluAlpha = 1.702;  // not in config.json
constexpr int64_t kHeadRows = 512;      // of the head at a time

// y = x W^T + b. Weights of bf16 and MXFP4 are exact in float. They lie transposed so that the
// inner loop runs over outputs: independent sums, each in the order of its inputs.
struct Linear {
  int64_t num_in = 0;
  int64_t num_out = 0;
  std::vector<float> weight;  // [num_in, num_out]
  std::vector<float> bias;    // [num_out]
};

using Vector = std::vector<double>;

// ---- Reading ----

const TensorEntry& find(const Checkpoint& checkpoint, const std::string& name, WireDType dtype,
                        const std::vector<int64_t>& shape) {
  const TensorEntry* entry = checkpoint.find(name);
  CHECK(entry != nullptr, "{} has no tensor {}", checkpoint.path(), name);
  CHECK_EQ(entry->dtype, dtype, "dtype of {}", name);
  CHECK(entry->shape == shape, "{} has another shape than the configuration says", name);
  return *entry;
}

float bf16_at(std::span<const uint8_t> bytes, int64_t index) {
  const uint32_t low = bytes[static_cast<size_t>(2 * index)];
  const uint32_t high = bytes[static_cast<size_t>(2 * index + 1)];
  return std::bit_cast<float>(high << 24 | low << 16);
}

std::vector<float> read_bf16(const Checkpoint& checkpoint, const std::string& name,
                             const std::vector<int64_t>& shape) {
  const TensorEntry& entry = find(checkpoint, name, WireDType::kBf16, shape);
  std::vector<float> values(static_cast<size_t>(entry.num_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = bf16_at(entry.bytes, static_cast<int64_t>(i));
  }
  return values;
}

// [num_rows, num_columns] -> [num_columns, num_rows]
std::vector<float> transposed(const std::vector<float>& rows, int64_t num_rows,
                              int64_t num_columns) {
  std::vector<float> out(rows.size());
  for (int64_t r = 0; r < num_rows; ++r) {
    for (int64_t c = 0; c < num_columns; ++c) out[c * num_rows + r] = rows[r * num_columns + c];
  }
  return out;
}

// `name`.weight and `name`.bias
Linear read_linear(const Checkpoint& checkpoint, const std::string& name, int64_t num_in,
                   int64_t num_out) {
  const auto weight = read_bf16(checkpoint, name + ".weight", {num_out, num_in});
  return {num_in, num_out, transposed(weight, num_out, num_in),
          read_bf16(checkpoint, name + ".bias", {num_out})};
}

// One row of MXFP4: 32 elements share a scale of 2^(e - 127); a byte holds two elements, the first
// in its low nibble; a nibble is a sign and one of eight magnitudes (E2M1).
void decode_mxfp4(std::span<const uint8_t> blocks, std::span<const uint8_t> scales, float* out) {
  constexpr float kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (size_t i = 0; i < 2 * blocks.size(); ++i) {
    const int nibble = blocks[i / 2] >> (i % 2 == 0 ? 0 : 4) & 15;
    const float magnitude = std::ldexp(kMagnitudes[nibble & 7], scales[i / 32] - 127);
    out[i] = nibble & 8 ? -magnitude : magnitude;
  }
}

// All experts' `name`_blocks, _scales and _bias.
std::vector<Linear> read_experts(const Checkpoint& checkpoint, const std::string& name,
                                 int64_t num_experts, int64_t num_in, int64_t num_out) {
  CHECK_EQ(num_in % 32, 0, "a row of {} holds whole groups", name);
  const int64_t groups = num_in / 32;
  const auto& blocks =
      find(checkpoint, name + "_blocks", WireDType::kU8, {num_experts, num_out, groups, 16}).bytes;
  const auto& scales =
      find(checkpoint, name + "_scales", WireDType::kU8, {num_experts, num_out, groups}).bytes;
  const auto bias = read_bf16(checkpoint, name + "_bias", {num_experts, num_out});
  std::vector<Linear> experts;
  for (int64_t e = 0; e < num_experts; ++e) {
    std::vector<float> weight(num_out * num_in);
    for (int64_t r = 0; r < num_out; ++r) {
      const int64_t row = e * num_out + r;
      decode_mxfp4(blocks.subspan(row * groups * 16, groups * 16),
                   scales.subspan(row * groups, groups), &weight[r * num_in]);
    }
    experts.push_back({num_in,
                       num_out,
                       transposed(weight, num_out, num_in),
                       {bias.begin() + e * num_out, bias.begin() + (e + 1) * num_out}});
  }
  return experts;
}

// Rows [begin, end) of the head.
Linear head_slice(std::span<const uint8_t> head, int64_t hidden_size, int64_t begin, int64_t end) {
  Linear slice = {hidden_size, end - begin, std::vector<float>((end - begin) * hidden_size), {}};
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t i = 0; i < hidden_size; ++i) {
      slice.weight[i * slice.num_out + row - begin] = bf16_at(head, row * hidden_size + i);
    }
  }
  return slice;
}

GptOssConfig read_config(const std::string& directory) {
  const auto opened = HfConfig::open(directory);
  if (!opened) throw UserError(opened.error());
  const HfConfig& file = *opened;
  GptOssConfig c;
  c.num_layers = file.integer("num_hidden_layers", kSize);
  c.hidden_size = file.integer("hidden_size", kSize);
  c.intermediate_size = file.integer("intermediate_size", kSize);
  c.num_q_heads = file.integer("num_attention_heads", kSize);
  c.num_kv_heads = file.integer("num_key_value_heads", kSize);
  c.head_dim = file.integer("head_dim", kSize);
  c.num_experts = file.integer("num_local_experts", kSize);
  c.num_experts_per_tok = file.integer("num_experts_per_tok", kSize);
  c.vocab_size = file.integer("vocab_size", kSize);
  c.sliding_window = file.integer("sliding_window", kSize);
  for (const std::string& type : file.strings("layer_types")) {
    c.is_sliding.push_back(type == "sliding_attention");
  }
  CHECK_EQ(std::ssize(c.is_sliding), c.num_layers, "layer_types of {}", file.file());
  c.rms_norm_eps = file.real("rms_norm_eps", kPositive);
  c.swiglu_limit = file.real("swiglu_limit", kPositive);
  c.rope_theta = file.real("rope_theta", kPositive);
  const auto yarn = file.section("rope_scaling");
  CHECK(yarn.has_value() && yarn->string("rope_type") == "yarn", "{} needs YaRN", file.file());
  c.yarn_factor = yarn->real("factor", kPositive);
  c.yarn_beta_fast = yarn->real("beta_fast", kPositive);
  c.yarn_beta_slow = yarn->real("beta_slow", kPositive);
  c.yarn_original_length = yarn->real("original_max_position_embeddings", kPositive);
  c.yarn_truncate = yarn->boolean("truncate");
  return c;
}

// ---- Arithmetic ----

Vector apply(const Linear& linear, std::span<const double> x, bool has_bias = true) {
  Vector y(linear.num_out, 0.0);
  if (has_bias) y.assign(linear.bias.begin(), linear.bias.end());
  double* __restrict out = y.data();
  for (int64_t i = 0; i < linear.num_in; ++i) {
    const float* row = &linear.weight[i * linear.num_out];
    for (int64_t o = 0; o < linear.num_out; ++o) out[o] += x[i] * row[o];
  }
  return y;
}

void add_scaled(Vector& sum, double scale, const Vector& x) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += scale * x[i];
}

Vector rms_norm(std::span<const double> x, const std::vector<float>& weight, double eps) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + eps);
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
  return y;
}

// YaRN: dimensions that turn more than beta_fast times in the original length keep their frequency,
// those that turn less than beta_slow times are slowed by the factor, a ramp lies between.
std::vector<float> yarn_frequencies(const GptOssConfig& c, bool truncate) {
  const auto dim_that_turns = [&](double rotations) {
    return static_cast<double>(c.head_dim) *
           std::log(c.yarn_original_length / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(c.rope_theta));
  };
  double low = dim_that_turns(c.yarn_beta_fast);
  double high = dim_that_turns(c.yarn_beta_slow);
  if (truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(c.head_dim - 1));
  std::vector<float> frequencies;
  for (int64_t d = 0; d < c.head_dim / 2; ++d) {
    const double plain =
        std::pow(c.rope_theta, -2.0 * static_cast<double>(d) / static_cast<double>(c.head_dim));
    const double ramp = std::clamp((static_cast<double>(d) - low) / (high - low), 0.0, 1.0);
    frequencies.push_back(static_cast<float>(plain * (1 - ramp) + plain / c.yarn_factor * ramp));
  }
  return frequencies;
}

// Turns element d of each head against d + head_dim / 2. The angle is a float product, as in every
// implementation the models were trained and are run with.
void rotate(const std::vector<float>& frequencies, double factor, size_t position, Vector& heads) {
  const size_t half = frequencies.size();
  for (size_t d = 0; d < half; ++d) {
    const float angle = static_cast<float>(position) * frequencies[d];
    const double cosine = std::cos(static_cast<double>(angle)) * factor;
    const double sine = std::sin(static_cast<double>(angle)) * factor;
    for (size_t at = d; at < heads.size(); at += 2 * half) {
      const double a = heads[at];
      const double b = heads[at + half];
      heads[at] = a * cosine - b * sine;
      heads[at + half] = b * cosine + a * sine;
    }
  }
}

// One query head over the tokens [first, last]. A sink takes its share of the softmax and adds
// nothing to the result.
struct HeadInput {
  const double* query;                // [head_dim]
  const std::vector<Vector>& keys;    // [num_tokens][num_kv_heads * head_dim]
  const std::vector<Vector>& values;  // likewise
  int64_t kv_offset;                  // of the head in keys and values
  int64_t head_dim;
  int64_t first;
  int64_t last;  // inclusive: the query's own position
  double sink;   // minus infinity for none
};

void attend(const HeadInput& in, double* out) {
  Vector scores;
  for (int64_t j = in.first; j <= in.last; ++j) {
    const double* key = &in.keys[j][in.kv_offset];
    double dot = 0;
    for (int64_t d = 0; d < in.head_dim; ++d) dot += in.query[d] * key[d];
    scores.push_back(dot / std::sqrt(static_cast<double>(in.head_dim)));
  }
  const double max = std::max(in.sink, *std::max_element(scores.begin(), scores.end()));
  double sum = std::exp(in.sink - max);
  for (double& score : scores) {
    score = std::exp(score - max);
    sum += score;
  }
  std::fill(out, out + in.head_dim, 0.0);
  for (int64_t j = in.first; j <= in.last; ++j) {
    const double* value = &in.values[j][in.kv_offset];
    const double weight = scores[j - in.first] / sum;
    for (int64_t d = 0; d < in.head_dim; ++d) out[d] += weight * value[d];
  }
}

double round_to_bf16(double x) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

// Turns logits into weights that sum to 1.
void softmax(Vector& x) {
  const double max = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double& value : x) {
    value = std::exp(value - max);
    sum += value;
  }
  for (double& value : x) value /= sum;
}

struct Routing {
  std::vector<int64_t> experts;
  Vector weights;
};

Routing route(Vector logits, int64_t num_chosen, Mistake mistake) {
  if (mistake == Mistake::kSoftmaxBeforeTopK) softmax(logits);
  Routing routing;
  routing.experts.resize(logits.size());
  std::iota(routing.experts.begin(), routing.experts.end(), 0);
  std::stable_sort(routing.experts.begin(), routing.experts.end(),
                   [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  routing.experts.resize(num_chosen);
  for (const int64_t e : routing.experts) routing.weights.push_back(logits[e]);
  if (mistake != Mistake::kSoftmaxBeforeTopK) softmax(routing.weights);
  if (mistake == Mistake::kExpertWeightsBf16) {
    for (double& weight : routing.weights) weight = round_to_bf16(weight);
  }
  return routing;
}

Vector swiglu(const Vector& gate_up, double limit, Mistake mistake) {
  const double alpha = mistake == Mistake::kAlphaOne ? 1 : kSwigluAlpha;
  const double offset = mistake == Mistake::kNoPlusOne ? 0 : 1;
  Vector out;
  for (size_t i = 0; i < gate_up.size(); i += 2) {
    double gate = gate_up[i];
    double up = gate_up[i + 1];
    if (mistake != Mistake::kNoClamp) {
      gate = std::min(gate, limit);
      up = std::clamp(up, -limit, limit);
    }
    out.push_back((up + offset) * gate / (1 + std::exp(-alpha * gate)));
  }
  return out;
}

// ln(sum(exp(x))) of values that come in pieces.
class LogSumExp {
 public:
  void add(const Vector& values) {
    const double max = std::max(max_, *std::max_element(values.begin(), values.end()));
    sum_ *= std::exp(max_ - max);
    for (const double value : values) sum_ += std::exp(value - max);
    max_ = max;
  }
  double value() const { return max_ + std::log(sum_); }

 private:
  double max_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
};

}  // namespace

struct GptOssReference::Layer {
  bool is_sliding;
  std::vector<float> input_norm;      // [hidden_size]
  std::vector<float> post_attn_norm;  // [hidden_size]
  Linear q_proj;
  Linear k_proj;
  Linear v_proj;
  Linear o_proj;
  std::vector<float> sinks;  // [num_q_heads]
  Linear router;
  std::vector<Linear> gate_up;  // [num_experts], outputs interleaved: gate 0, up 0, gate 1, ...
  std::vector<Linear> down;     // [num_experts]

  Layer(const GptOssConfig& c, const Checkpoint& checkpoint, int64_t layer_idx);
  // These add their result to x [num_tokens][hidden_size].
  void attention(const GptOssConfig& c, Mistake mistake, std::vector<Vector>& x) const;
  void mlp(const GptOssConfig& c, Mistake mistake, std::vector<Vector>& x) const;
  // What attention does for the token at `position`: [num_q_heads * head_dim].
  Vector attend_from(const GptOssConfig& c, Mistake mistake, int64_t position, const Vector& query,
                     const std::vector<Vector>& keys, const std::vector<Vector>& values) const;
};

GptOssReference::Layer::Layer(const GptOssConfig& c, const Checkpoint& checkpoint,
                              int64_t layer_idx)
    : is_sliding(c.is_sliding[layer_idx]) {
  const std::string layer = fmt::format("model.layers.{}.", layer_idx);
  input_norm = read_bf16(checkpoint, layer + "input_layernorm.weight", {c.hidden_size});
  post_attn_norm =
      read_bf16(checkpoint, layer + "post_attention_layernorm.weight", {c.hidden_size});
  const int64_t q_size = c.num_q_heads * c.head_dim;
  const int64_t kv_size = c.num_kv_heads * c.head_dim;
  q_proj = read_linear(checkpoint, layer + "self_attn.q_proj", c.hidden_size, q_size);
  k_proj = read_linear(checkpoint, layer + "self_attn.k_proj", c.hidden_size, kv_size);
  v_proj = read_linear(checkpoint, layer + "self_attn.v_proj", c.hidden_size, kv_size);
  o_proj = read_linear(checkpoint, layer + "self_attn.o_proj", q_size, c.hidden_size);
  sinks = read_bf16(checkpoint, layer + "self_attn.sinks", {c.num_q_heads});
  router = read_linear(checkpoint, layer + "mlp.router", c.hidden_size, c.num_experts);
  gate_up = read_experts(checkpoint, layer + "mlp.experts.gate_up_proj", c.num_experts,
                         c.hidden_size, 2 * c.intermediate_size);
  down = read_experts(checkpoint, layer + "mlp.experts.down_proj", c.num_experts,
                      c.intermediate_size, c.hidden_size);
}

Vector GptOssReference::Layer::attend_from(const GptOssConfig& c, Mistake mistake, int64_t position,
                                           const Vector& query, const std::vector<Vector>& keys,
                                           const std::vector<Vector>& values) const {
  int64_t window = c.sliding_window;
  if (mistake == Mistake::kWindow127) --window;
  if (mistake == Mistake::kWindow129) ++window;
  Vector out(query.size());
  for (int64_t head = 0; head < c.num_q_heads; ++head) {
    const bool has_sink = mistake != Mistake::kNoSinks;
    attend({.query = &query[head * c.head_dim],
            .keys = keys,
            .values = values,
            .kv_offset = head / (c.num_q_heads / c.num_kv_heads) * c.head_dim,
            .head_dim = c.head_dim,
            .first = is_sliding ? std::max<int64_t>(0, position - window + 1) : 0,
            .last = position,
            .sink = has_sink ? sinks[head] : -std::numeric_limits<double>::infinity()},
           &out[head * c.head_dim]);
  }
  return out;
}

void GptOssReference::Layer::attention(const GptOssConfig& c, Mistake mistake,
                                       std::vector<Vector>& x) const {
  const auto frequencies =
      yarn_frequencies(c, c.yarn_truncate || mistake == Mistake::kYarnTruncated);
  const double factor =
      mistake == Mistake::kNoAttentionFactor ? 1 : 0.1 * std::log(c.yarn_factor) + 1;
  std::vector<Vector> keys;
  std::vector<Vector> values;
  for (size_t t = 0; t < x.size(); ++t) {
    const Vector h = rms_norm(x[t], input_norm, c.rms_norm_eps);
    Vector query = apply(q_proj, h, mistake != Mistake::kNoQBias);
    keys.push_back(apply(k_proj, h, mistake != Mistake::kNoKBias));
    values.push_back(apply(v_proj, h, mistake != Mistake::kNoVBias));
    rotate(frequencies, factor, t, query);
    rotate(frequencies, factor, t, keys[t]);
    // What lies before this token is complete, so it can attend at once.
    const Vector attended = attend_from(c, mistake, static_cast<int64_t>(t), query, keys, values);
    add_scaled(x[t], 1, apply(o_proj, attended, mistake != Mistake::kNoOBias));
  }
}

void GptOssReference::Layer::mlp(const GptOssConfig& c, Mistake mistake,
                                 std::vector<Vector>& x) const {
  for (Vector& token : x) {
    const Vector h = rms_norm(token, post_attn_norm, c.rms_norm_eps);
    const Routing routing =
        route(apply(router, h, mistake != Mistake::kNoRouterBias), c.num_experts_per_tok, mistake);
    for (size_t k = 0; k < routing.experts.size(); ++k) {
      const int64_t e = routing.experts[k];
      const Vector gated =
          swiglu(apply(gate_up[e], h, mistake != Mistake::kNoGateUpBias), c.swiglu_limit, mistake);
      add_scaled(token, routing.weights[k], apply(down[e], gated, mistake != Mistake::kNoDownBias));
    }
  }
}

GptOssReference::GptOssReference(const std::string& directory) : config_(read_config(directory)) {
  auto opened = Checkpoint::open(directory);
  if (!opened) throw UserError(opened.error());
  checkpoint_ = *std::move(opened);
  for (int64_t i = 0; i < config_.num_layers; ++i) layers_.emplace_back(config_, *checkpoint_, i);
  final_norm_ = read_bf16(*checkpoint_, "model.norm.weight", {config_.hidden_size});
  const std::vector<int64_t> table_shape = {config_.vocab_size, config_.hidden_size};
  embedding_ = find(*checkpoint_, "model.embed_tokens.weight", WireDType::kBf16, table_shape).bytes;
  head_ = find(*checkpoint_, "lm_head.weight", WireDType::kBf16, table_shape).bytes;
}

GptOssReference::~GptOssReference() = default;

std::vector<Vector> GptOssReference::hidden_states(std::span<const int32_t> tokens,
                                                   Mistake mistake) const {
  std::vector<Vector> x;
  for (const int32_t token : tokens) {
    CHECK(token >= 0 && token < config_.vocab_size, "token {} is not in the vocabulary", token);
    Vector row(config_.hidden_size);
    for (int64_t i = 0; i < config_.hidden_size; ++i) {
      row[i] = bf16_at(embedding_, token * config_.hidden_size + i);
    }
    x.push_back(std::move(row));
  }
  for (const Layer& layer : layers_) {
    layer.attention(config_, mistake, x);
    layer.mlp(config_, mistake, x);
  }
  for (Vector& row : x) row = rms_norm(row, final_norm_, config_.rms_norm_eps);
  return x;
}

GptOssReference::Output GptOssReference::run(std::span<const int32_t> tokens,
                                             Mistake mistake) const {
  CHECK(!tokens.empty(), "nothing to run");
  const std::vector<Vector> hidden = hidden_states(tokens, mistake);
  Output output;
  Vector target_logits(tokens.size() - 1);
  std::vector<LogSumExp> sums(tokens.size() - 1);
  // A slice of the vocabulary at a time: all logits of all tokens would not fit in memory.
  for (int64_t begin = 0; begin < config_.vocab_size; begin += kHeadRows) {
    const int64_t end = std::min(begin + kHeadRows, config_.vocab_size);
    const Linear head = head_slice(head_, config_.hidden_size, begin, end);
    for (size_t t = 0; t < tokens.size(); ++t) {
      const Vector logits = apply(head, hidden[t], false);
      if (t + 1 == tokens.size()) {
        output.final_logits.insert(output.final_logits.end(), logits.begin(), logits.end());
        continue;
      }
      sums[t].add(logits);
      const int32_t next = tokens[t + 1];
      if (begin <= next && next < end) target_logits[t] = logits[next - begin];
    }
  }
  for (size_t t = 0; t < target_logits.size(); ++t) {
    output.logprobs.push_back(target_logits[t] - sums[t].value());
  }
  return output;
}

const char* to_string(Mistake mistake) {
  constexpr const char* kNames[] = {"kNone",          "kWindow127",         "kWindow129",
                                    "kYarnTruncated", "kNoAttentionFactor", "kNoClamp",
                                    "kAlphaOne",      "kNoPlusOne",         "kSoftmaxBeforeTopK",
                                    "kNoSinks",       "kNoQBias",           "kNoKBias",
                                    "kNoVBias",       "kNoOBias",           "kNoRouterBias",
                                    "kNoGateUpBias",  "kNoDownBias",        "kExpertWeightsBf16"};
  return kNames[static_cast<size_t>(mistake)];
}

}  // namespace briar::reference
