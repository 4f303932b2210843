// Llama 2 and 3 and the dense models that differ from them by options: Mistral (sliding window),
// Qwen2 (biases of q, k and v), Qwen3 (norms of q and k), SmolLM2 (a Llama by its config).
#include "models/llama.h"

#include <algorithm>
#include <cmath>

#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/layer_weights.h"
#include "layers/mlp.h"
#include "layers/rope.h"
#include "models/layer_types.h"
#include "weights/rope_config.h"

namespace briar {
namespace {

// ---- config ----------------------------------------------------------------------------------

// What an architecture's name says and its config.json does not.
struct Family {
  const char* architecture;
  const char* model_type;
  bool has_qkv_bias = false;
  bool has_qk_norm = false;
  // Where the file has a sliding_window and no use_sliding_window.
  bool uses_window = false;
};

struct LlamaConfig {
  Family family;
  int64_t hidden_size, intermediate_size, vocab_size, num_layers;
  int64_t num_q_heads, num_kv_heads, head_dim;
  int64_t window, max_model_len;
  float rms_norm_eps;
  bool ties_embeddings, has_qkv_bias, has_o_bias, has_mlp_bias;
  std::vector<bool> is_window_layer;
  RopeScaling rope;
};

// Qwen2 gives its first max_window_layers layers full attention, Mistral has windows everywhere;
// newer files list every layer's type.
std::vector<bool> read_window_layers(const HfConfig& hf, const LlamaConfig& c) {
  const auto n = static_cast<size_t>(c.num_layers);
  if (c.window == 0) return std::vector<bool>(n, false);
  if (const auto types = read_layer_types(hf, c.num_layers)) return *types;
  const int64_t first = hf.integer_or("max_window_layers", 0, {0, 1 << 20});
  std::vector<bool> out(n, true);
  std::fill_n(out.begin(), std::min(first, c.num_layers), false);
  return out;
}

void check_config(const HfConfig& hf, const LlamaConfig& c) {
  if (c.num_q_heads % c.num_kv_heads != 0) {
    hf.fail("num_attention_heads",
            fmt::format("which is not a multiple of num_key_value_heads = {}", c.num_kv_heads));
  }
  if (c.head_dim % 2 != 0) {
    throw_user_error("{}: heads of {} elements, but rotary pairs need an even number", hf.file(),
                     c.head_dim);
  }
  if (hf.string_or("hidden_act", "silu") != "silu") hf.fail("hidden_act", "expected silu");
  if (c.rope.partial_rotary_factor != 1) {
    throw_user_error("{}: partial_rotary_factor is {}, but whole heads are rotated here", hf.file(),
                     c.rope.partial_rotary_factor);
  }
  if (c.rope.kind == RopeKind::kPerPair &&
      static_cast<int64_t>(c.rope.divisors.size()) != c.head_dim / 2) {
    throw_user_error("{}: {} rope divisors for {} pairs of a head", hf.file(),
                     c.rope.divisors.size(), c.head_dim / 2);
  }
}

LlamaConfig read_config(const HfConfig& hf, const Family& family) {
  constexpr IntRange kSize{1, 1 << 24};
  LlamaConfig c{};
  c.family = family;
  c.hidden_size = hf.integer("hidden_size", kSize);
  c.intermediate_size = hf.integer("intermediate_size", kSize);
  c.vocab_size = hf.integer("vocab_size", kSize);
  c.num_layers = hf.integer("num_hidden_layers", {1, 1024});
  c.num_q_heads = hf.integer("num_attention_heads", {1, 4096});
  c.num_kv_heads = hf.integer_or("num_key_value_heads", c.num_q_heads, {1, 4096});
  c.head_dim = hf.integer_or("head_dim", c.hidden_size / c.num_q_heads, {2, 256});
  c.rms_norm_eps = static_cast<float>(hf.real_or("rms_norm_eps", 1e-6, {0, 1}));
  c.max_model_len = hf.integer_or("max_position_embeddings", 2048, {1, int64_t{1} << 30});
  c.ties_embeddings = hf.boolean_or("tie_word_embeddings", false);
  c.has_o_bias = hf.boolean_or("attention_bias", false);
  c.has_qkv_bias = family.has_qkv_bias || c.has_o_bias;
  c.has_mlp_bias = hf.boolean_or("mlp_bias", false);
  if (hf.boolean_or("use_sliding_window", family.uses_window)) {
    c.window = hf.integer_or("sliding_window", 0, {1, int64_t{1} << 30});
  }
  c.is_window_layer = read_window_layers(hf, c);
  c.rope = read_rope(hf, 10000);
  check_config(hf, c);
  return c;
}

// ---- weights ---------------------------------------------------------------------------------

struct LlamaLayer {
  RmsNorm input_norm;
  Attention attn;
  RmsNorm post_attn_norm;
  Mlp mlp;

  // x: the block before this one; out: where this layer's block goes. They may be the same tensor.
  PartialSum forward(const ForwardContext& ctx, PartialSum x, const TensorView& residual,
                     const TensorView& out) const;
};

Attention attention(const LlamaConfig& c, LayerWeights& weights, const std::string& p, int64_t i) {
  const int64_t q_rows = c.num_q_heads * c.head_dim, kv_rows = c.num_kv_heads * c.head_dim;
  const bool is_window = c.is_window_layer[static_cast<size_t>(i)];
  Attention out{.qkv_proj = weights.stacked(
                    {{p + "q_proj", q_rows}, {p + "k_proj", kv_rows}, {p + "v_proj", kv_rows}},
                    c.hidden_size, c.has_qkv_bias),
                .o_proj = weights.linear(p + "o_proj", c.hidden_size, q_rows, c.has_o_bias),
                .num_q_heads = c.num_q_heads,
                .head_dim = c.head_dim,
                .scale = 1.f / std::sqrt(static_cast<float>(c.head_dim)),
                .window = is_window ? static_cast<int>(c.window) : 0,
                .kv_kind = is_window ? KvKind::kWindow : KvKind::kFull,
                .layer_idx = static_cast<int>(i)};
  if (c.family.has_qk_norm) {
    out.q_norm = weights.norm(p + "q_norm.weight", c.head_dim, c.rms_norm_eps);
    out.k_norm = weights.norm(p + "k_norm.weight", c.head_dim, c.rms_norm_eps);
  }
  return out;
}

LlamaLayer layer(const LlamaConfig& c, LayerWeights& weights, int64_t i) {
  const std::string p = fmt::format("model.layers.{}.", i);
  const int64_t inner = c.intermediate_size;
  // Older files list the rotary frequencies, which follow from the config.
  weights.loader().ignore(p + "self_attn.rotary_emb.inv_freq");
  return {.input_norm = weights.norm(p + "input_layernorm.weight", c.hidden_size, c.rms_norm_eps),
          .attn = attention(c, weights, p + "self_attn.", i),
          .post_attn_norm =
              weights.norm(p + "post_attention_layernorm.weight", c.hidden_size, c.rms_norm_eps),
          .mlp = {.gate_up_proj =
                      weights.stacked({{p + "mlp.gate_proj", inner}, {p + "mlp.up_proj", inner}},
                                      c.hidden_size, c.has_mlp_bias),
                  .down_proj =
                      weights.linear(p + "mlp.down_proj", c.hidden_size, inner, c.has_mlp_bias)}};
}

// ---- forward ---------------------------------------------------------------------------------

PartialSum LlamaLayer::forward(const ForwardContext& ctx, PartialSum x, const TensorView& residual,
                               const TensorView& out) const {
  const TensorView h = input_norm.forward(ctx, x, residual);
  const PartialSum a = attn.forward(ctx, h);
  const TensorView m = post_attn_norm.forward(ctx, a, residual);
  return mlp.forward(ctx, m, out);
}

class Llama final : public Model {
 public:
  Llama(const LlamaConfig& config, const Precision& precision, WeightLoader& loader)
      : config_(config), precision_(precision), rope_(config.rope, config.head_dim) {
    LayerWeights weights(precision_, loader);
    const LlamaConfig& c = config_;
    embedding_ = weights.embedding("model.embed_tokens", c.vocab_size, c.hidden_size);
    for (int64_t i = 0; i < c.num_layers; ++i) layers_.push_back(layer(c, weights, i));
    final_norm_ = weights.norm("model.norm.weight", c.hidden_size, c.rms_norm_eps);
    if (c.ties_embeddings) {
      head_ = embedding_.tied_head();
      loader.ignore("lm_head.weight");  // some files repeat the embedding under this name
    } else {
      head_ = weights.linear("lm_head", c.vocab_size, c.hidden_size);
    }
    fill_info();
  }

  const ModelInfo& info() const override { return info_; }

  TensorView forward(ForwardContext& ctx) const override {
    ctx.rope_cos_sin = rope_.table(ctx.stream, ctx.workspace, ctx.batch.positions);
    const TensorView residual = embedding_.forward(ctx);
    const TensorView block = ctx.make(DType::kFp32, residual.size(0), residual.size(1));
    PartialSum x;
    for (const LlamaLayer& layer : layers_) {
      const Arena::Scope scope(ctx.workspace);
      x = layer.forward(ctx, x, residual, block);
    }
    return final_norm_.forward_outputs(ctx, x, residual);
  }

  void logits(Stream& stream, const TensorView& hidden, const TensorView& out) const override {
    head_.forward_into(stream, hidden, out);
  }

  int64_t workspace_bytes(int64_t num_tokens) const override;

 private:
  void fill_info();

  LlamaConfig config_;
  Precision precision_;
  Rope rope_;
  Embedding embedding_;
  std::vector<LlamaLayer> layers_;
  RmsNorm final_norm_;
  Linear head_;
  ModelInfo info_;
};

int64_t Llama::workspace_bytes(int64_t n) const {
  const LlamaConfig& c = config_;
  const int64_t q_width = c.num_q_heads * c.head_dim;
  auto activations = [&](int64_t count) { return Arena::footprint(precision_.activations, count); };
  auto words = [](int64_t count) { return Arena::footprint(DType::kFp32, count); };
  const int64_t model = words(n * c.head_dim) + 2 * words(n * c.hidden_size);
  const int64_t attention = activations(n * c.hidden_size) +
                            words(n * (q_width + 2 * c.num_kv_heads * c.head_dim)) +
                            2 * activations(n * q_width) + words(n * c.hidden_size);
  const int64_t mlp = activations(n * c.hidden_size) + words(n * 2 * c.intermediate_size) +
                      activations(n * c.intermediate_size);
  return model + attention + mlp;
}

void Llama::fill_info() {
  const LlamaConfig& c = config_;
  info_ = {.architecture = c.family.architecture,
           .model_type = c.family.model_type,
           .vocab_size = c.vocab_size,
           .max_model_len = c.max_model_len,
           .hidden_size = c.hidden_size,
           .num_kv_heads = c.num_kv_heads,
           .head_dim = c.head_dim,
           .window = static_cast<int>(c.window),
           .layer_kinds = {},
           .bytes_per_token = head_.num_bytes() + final_norm_.weight.num_bytes()};
  for (const LlamaLayer& l : layers_) {
    info_.layer_kinds.push_back(l.attn.kv_kind);
    info_.bytes_per_token += l.attn.qkv_proj.num_bytes() + l.attn.o_proj.num_bytes() +
                             l.mlp.gate_up_proj.num_bytes() + l.mlp.down_proj.num_bytes() +
                             l.input_norm.weight.num_bytes() + l.post_attn_norm.weight.num_bytes();
  }
}

std::unique_ptr<Model> make(const ModelConfig& config, WeightLoader& loader, const Family& family) {
  return std::make_unique<Llama>(read_config(config.hf, family), config.precision, loader);
}

}  // namespace

std::unique_ptr<Model> make_llama(const ModelConfig& config, WeightLoader& loader) {
  return make(config, loader, {.architecture = "LlamaForCausalLM", .model_type = "llama"});
}

std::unique_ptr<Model> make_mistral(const ModelConfig& config, WeightLoader& loader) {
  return make(config, loader,
              {.architecture = "MistralForCausalLM", .model_type = "mistral", .uses_window = true});
}

std::unique_ptr<Model> make_qwen2(const ModelConfig& config, WeightLoader& loader) {
  return make(config, loader,
              {.architecture = "Qwen2ForCausalLM", .model_type = "qwen2", .has_qkv_bias = true});
}

std::unique_ptr<Model> make_qwen3(const ModelConfig& config, WeightLoader& loader) {
  return make(config, loader,
              {.architecture = "Qwen3ForCausalLM", .model_type = "qwen3", .has_qk_norm = true});
}

}  // namespace briar
