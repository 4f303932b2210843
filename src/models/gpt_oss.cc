// gpt-oss: grouped-query attention with learned sinks, alternating sliding-window and full layers,
// YaRN, and a mixture of experts with a clamped SwiGLU; biases everywhere but in embedding and
// head.
#include "models/gpt_oss.h"

#include <algorithm>
#include <cmath>

#include "layers/attention.h"
#include "layers/embedding.h"
#include "layers/layer_weights.h"
#include "layers/linear.h"
#include "layers/moe.h"
#include "layers/norm.h"
#include "layers/rope.h"
#include "models/layer_types.h"
#include "weights/rope_config.h"

namespace briar {
namespace {

// ---- config ----------------------------------------------------------------------------------

struct GptOssConfig {
  int64_t hidden_size, intermediate_size, vocab_size, num_layers;
  int64_t num_q_heads, num_kv_heads, head_dim;
  int64_t num_experts, num_experts_per_tok;
  int64_t window, max_model_len;
  float rms_norm_eps, swiglu_limit;
  std::vector<bool> is_window_layer;
  RopeScaling rope;
};

// Every other layer, beginning with the first, has a window unless the file says otherwise.
std::vector<bool> read_window_layers(const HfConfig& hf, int64_t num_layers) {
  if (const auto types = read_layer_types(hf, num_layers)) return *types;
  std::vector<bool> is_window;
  for (int64_t i = 0; i < num_layers; ++i) is_window.push_back(i % 2 == 0);
  return is_window;
}

GptOssConfig read_config(const HfConfig& hf) {
  constexpr IntRange kSize{1, 1 << 24};
  GptOssConfig c{};
  c.hidden_size = hf.integer("hidden_size", kSize);
  c.intermediate_size = hf.integer("intermediate_size", kSize);
  c.vocab_size = hf.integer("vocab_size", kSize);
  c.num_layers = hf.integer("num_hidden_layers", {1, 1024});
  c.num_q_heads = hf.integer("num_attention_heads", {1, 4096});
  c.num_kv_heads = hf.integer("num_key_value_heads", {1, 4096});
  c.head_dim = hf.integer("head_dim", {2, 256});
  c.num_experts = hf.integer({"num_local_experts", "num_experts"}, {1, 4096});
  c.num_experts_per_tok = hf.integer({"num_experts_per_tok", "experts_per_token"}, {1, 64});
  c.window = hf.integer("sliding_window", {1, 1 << 20});
  c.rms_norm_eps = static_cast<float>(hf.real_or("rms_norm_eps", 1e-5, {0, 1}));
  c.swiglu_limit = static_cast<float>(hf.real_or("swiglu_limit", 7.0, {0, 1e6}));
  c.is_window_layer = read_window_layers(hf, c.num_layers);
  // gpt-oss without its scaling gives fluent nonsense beyond 4,096 tokens: a folder that lost it is
  // refused.
  c.rope = read_rope_of_kind(hf, RopeKind::kYarn);
  const double stretched =
      static_cast<double>(c.rope.original_max_position_embeddings) * c.rope.factor;
  c.max_model_len = hf.integer_or("max_position_embeddings", static_cast<int64_t>(stretched),
                                  {1, int64_t{1} << 30});
  if (c.num_q_heads % c.num_kv_heads != 0) {
    hf.fail("num_attention_heads",
            fmt::format("which is not a multiple of num_key_value_heads = {}", c.num_kv_heads));
  }
  if (hf.boolean_or("tie_word_embeddings", false)) {
    hf.fail("tie_word_embeddings", "but gpt-oss has a head of its own");
  }
  if (c.head_dim % 2 != 0) hf.fail("head_dim", "but rotary pairs need an even number");
  if (c.num_experts_per_tok > c.num_experts) {
    hf.fail({"num_experts_per_tok", "experts_per_token"},
            fmt::format("more than the {} experts", c.num_experts));
  }
  for (const char* key : {"hidden_size", "intermediate_size"}) {
    if (hf.integer(key, kSize) % 32 != 0) hf.fail(key, "but MXFP4 experts need a multiple of 32");
  }
  return c;
}

// ---- weights ---------------------------------------------------------------------------------

struct GptOssLayer {
  RmsNorm input_norm;
  Attention attn;
  RmsNorm post_attn_norm;
  Moe moe;

  // x: the block before this one; out: where this layer's block goes. They may be the same tensor:
  // the first norm has read x before the experts write out.
  PartialSum forward(const ForwardContext& ctx, PartialSum x, const TensorView& residual,
                     const TensorView& out) const;
};

// The two published spellings of the same tensors: Hugging Face's, and that of OpenAI's `original/`
// folders, where q, k and v are one tensor.
class GptOssWeights {
 public:
  GptOssWeights(const GptOssConfig& config, const Precision& precision, WeightLoader& loader)
      : c_(config),
        precision_(precision),
        loader_(loader),
        layers_(precision, loader),
        is_original_(loader.has("embedding.weight")) {}

  Embedding embedding() {
    return layers_.embedding(is_original_ ? "embedding" : "model.embed_tokens", c_.vocab_size,
                             c_.hidden_size);
  }
  Linear head() {
    return layers_.linear(is_original_ ? "unembedding" : "lm_head", c_.vocab_size, c_.hidden_size);
  }
  RmsNorm final_norm() { return norm(is_original_ ? "norm.scale" : "model.norm.weight"); }

  GptOssLayer layer(int64_t i) {
    const std::string p = fmt::format("{}{}.", is_original_ ? "block." : "model.layers.", i);
    return {.input_norm = norm(p + (is_original_ ? "attn.norm.scale" : "input_layernorm.weight")),
            .attn = attention(p + (is_original_ ? "attn." : "self_attn."), i),
            .post_attn_norm =
                norm(p + (is_original_ ? "mlp.norm.scale" : "post_attention_layernorm.weight")),
            .moe = moe(p + "mlp.")};
  }

 private:
  RmsNorm norm(const std::string& name) {
    return layers_.norm(name, c_.hidden_size, c_.rms_norm_eps);
  }
  Linear linear(const std::string& prefix, int64_t rows, int64_t columns) {
    return layers_.linear(prefix, rows, columns, true);
  }

  Linear qkv(const std::string& p, int64_t q_rows, int64_t kv_rows) {
    if (is_original_) return linear(p + "qkv", q_rows + 2 * kv_rows, c_.hidden_size);
    return layers_.stacked(
        {{p + "q_proj", q_rows}, {p + "k_proj", kv_rows}, {p + "v_proj", kv_rows}}, c_.hidden_size,
        true);
  }

  Attention attention(const std::string& p, int64_t i) {
    const int64_t q_rows = c_.num_q_heads * c_.head_dim, kv_rows = c_.num_kv_heads * c_.head_dim;
    const bool is_window = c_.is_window_layer[static_cast<size_t>(i)];
    return {.qkv_proj = qkv(p, q_rows, kv_rows),
            .o_proj = linear(p + (is_original_ ? "out" : "o_proj"), c_.hidden_size, q_rows),
            .sinks = loader_.dense(p + "sinks", {c_.num_q_heads}, DType::kFp32),
            .num_q_heads = c_.num_q_heads,
            .head_dim = c_.head_dim,
            .scale = 1.f / std::sqrt(static_cast<float>(c_.head_dim)),
            .window = is_window ? static_cast<int>(c_.window) : 0,
            .kv_kind = is_window ? KvKind::kWindow : KvKind::kFull,
            .layer_idx = static_cast<int>(i)};
  }

  ExpertProjection experts(const std::string& p, const std::string& original, int64_t rows,
                           int64_t columns) {
    const std::string blocks = is_original_ ? original + "weight.blocks" : p + "_blocks";
    const std::string scales = is_original_ ? original + "weight.scales" : p + "_scales";
    const std::string bias = is_original_ ? original + "bias" : p + "_bias";
    WeightLoader::ExpertWeights w;
    if (!is_original_ && loader_.has(p)) {  // fine-tuned checkpoints that were saved in bf16
      const DType dtype = layers_.dense_dtype(p);
      w = loader_.transposed_experts(p, c_.num_experts, rows, columns, dtype);
    } else {
      w = loader_.mxfp4_experts(blocks, scales, c_.num_experts, rows, columns, precision_.experts);
    }
    return {w.values, w.scales, layers_.dense(bias, {c_.num_experts, rows})};
  }

  Moe moe(const std::string& p) {
    return {.router_proj =
                linear(p + (is_original_ ? "gate" : "router"), c_.num_experts, c_.hidden_size),
            .gate_up_proj = experts(p + "experts.gate_up_proj", p + "mlp1_",
                                    2 * c_.intermediate_size, c_.hidden_size),
            .down_proj =
                experts(p + "experts.down_proj", p + "mlp2_", c_.hidden_size, c_.intermediate_size),
            .num_experts_per_tok = c_.num_experts_per_tok,
            .swiglu_limit = c_.swiglu_limit};
  }

  const GptOssConfig& c_;
  const Precision& precision_;
  WeightLoader& loader_;
  LayerWeights layers_;
  bool is_original_;
};

// ---- forward ---------------------------------------------------------------------------------

PartialSum GptOssLayer::forward(const ForwardContext& ctx, PartialSum x, const TensorView& residual,
                                const TensorView& out) const {
  const TensorView h = input_norm.forward(ctx, x, residual);
  const PartialSum a = attn.forward(ctx, h);
  const TensorView m = post_attn_norm.forward(ctx, a, residual);
  return moe.forward(ctx, m, out);
}

class GptOss final : public Model {
 public:
  GptOss(const GptOssConfig& config, const Precision& precision, WeightLoader& loader)
      : config_(config), precision_(precision), rope_(config.rope, config.head_dim) {
    GptOssWeights weights(config_, precision_, loader);
    embedding_ = weights.embedding();
    for (int64_t i = 0; i < config_.num_layers; ++i) layers_.push_back(weights.layer(i));
    final_norm_ = weights.final_norm();
    head_ = weights.head();
    fill_info();
  }

  const ModelInfo& info() const override { return info_; }

  TensorView forward(ForwardContext& ctx) const override {
    ctx.rope_cos_sin = rope_.table(ctx.stream, ctx.workspace, ctx.batch.positions);
    const TensorView residual = embedding_.forward(ctx);
    const TensorView block = ctx.make(DType::kFp32, residual.size(0), residual.size(1));
    PartialSum x;
    for (const GptOssLayer& layer : layers_) {
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

  GptOssConfig config_;
  Precision precision_;
  Rope rope_;
  Embedding embedding_;
  std::vector<GptOssLayer> layers_;
  RmsNorm final_norm_;
  Linear head_;
  ModelInfo info_;
};

int64_t GptOss::workspace_bytes(int64_t n) const {
  const GptOssConfig& c = config_;
  const int64_t k = c.num_experts_per_tok, q_width = c.num_q_heads * c.head_dim;
  auto activations = [&](int64_t count) { return Arena::footprint(precision_.activations, count); };
  auto words = [](int64_t count) { return Arena::footprint(DType::kFp32, count); };
  const int64_t model = words(n * c.head_dim) + 2 * words(n * c.hidden_size);
  const int64_t attention = activations(n * c.hidden_size) +
                            words(n * (q_width + 2 * c.num_kv_heads * c.head_dim)) +
                            2 * activations(n * q_width) + words(n * c.hidden_size);
  const int64_t routing = words(n * c.num_experts) + 4 * words(n * k) + words(c.num_experts + 1);
  const int64_t experts = activations(n * c.hidden_size) + words(n * k * 2 * c.intermediate_size) +
                          activations(n * k * c.intermediate_size) + words(n * k * c.hidden_size);
  return model + attention + routing + experts;
}

void GptOss::fill_info() {
  const GptOssConfig& c = config_;
  info_ = {.architecture = "GptOssForCausalLM",
           .model_type = "gpt_oss",
           .vocab_size = c.vocab_size,
           .max_model_len = c.max_model_len,
           .hidden_size = c.hidden_size,
           .num_kv_heads = c.num_kv_heads,
           .head_dim = c.head_dim,
           .window = static_cast<int>(c.window),
           .layer_kinds = {},
           .bytes_per_token = head_.num_bytes() + final_norm_.weight.num_bytes()};
  for (const GptOssLayer& l : layers_) {
    info_.layer_kinds.push_back(l.attn.kv_kind);
    info_.bytes_per_token += l.attn.qkv_proj.num_bytes() + l.attn.o_proj.num_bytes() +
                             l.moe.router_proj.num_bytes() + l.input_norm.weight.num_bytes() +
                             l.post_attn_norm.weight.num_bytes();
    for (const ExpertProjection* e : {&l.moe.gate_up_proj, &l.moe.down_proj}) {
      info_.bytes_per_token +=
          (e->weight.num_bytes() + e->scales.num_bytes() + e->bias.num_bytes()) *
          c.num_experts_per_tok / c.num_experts;
    }
  }
}

}  // namespace

std::unique_ptr<Model> make_gpt_oss(const ModelConfig& config, WeightLoader& loader) {
  return std::make_unique<GptOss>(read_config(config.hf), config.precision, loader);
}

bool is_original_gpt_oss(const HfConfig& config) {
  return config.has("num_experts") && config.has("rope_ntk_alpha") && config.has("swiglu_limit");
}

}  // namespace briar
