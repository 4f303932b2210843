#include "weights/gguf_model.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>
#include <utility>

#include "weights/convert.h"
#include "weights/printable.h"

namespace briar {
namespace {

namespace bj = boost::json;

struct Architecture {
  const char* gguf;
  const char* huggingface;
  const char* model_type;
  // The conversion reorders q and k for a rotation of neighbouring elements.
  bool interleaves_qk;
};
constexpr Architecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", "llama", true},  // Mistral and SmolLM2 too
    {"qwen2", "Qwen2ForCausalLM", "qwen2", false},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", false},
};

using NamePair = std::pair<std::string_view, std::string_view>;
// Without .weight and .bias.
constexpr NamePair kNames[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
// After "blk.N." and "model.layers.N.".
constexpr NamePair kLayerNames[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};
constexpr std::string_view kRopeDivisors = "rope_freqs.weight";

const Architecture& find_architecture(const GgufMetadata& m) {
  const std::string name(m.find_string("general.architecture").value_or(""));
  std::string known;
  for (const Architecture& a : kArchitectures) {
    if (name == a.gguf) return a;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", a.gguf);
  }
  throw_user_error("{}: general.architecture is \"{}\"; supported: {}", m.file(), printable(name),
                   known);
}

const TensorEntry* find_tensor(const GgufContents& gguf, std::string_view name) {
  for (const TensorEntry& entry : gguf.tensors) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

// Reads `architecture`.* and builds the document.
class ConfigBuilder {
 public:
  ConfigBuilder(const GgufContents& gguf, const Architecture& a)
      : gguf_(gguf), m_(gguf.metadata), a_(a) {}

  bj::object build() {
    out_["architectures"] = bj::array{a_.huggingface};
    out_["model_type"] = a_.model_type;
    integer("hidden_size", "embedding_length");
    integer("intermediate_size", "feed_forward_length");
    integer("num_hidden_layers", "block_count");
    integer("num_attention_heads", "attention.head_count");
    integer("num_key_value_heads", "attention.head_count_kv");
    integer("head_dim", "attention.key_length");
    integer("max_position_embeddings", "context_length");
    real("rms_norm_eps", "attention.layer_norm_rms_epsilon");
    real("rope_theta", "rope.freq_base");
    integer("sliding_window", "attention.sliding_window");
    out_["use_sliding_window"] = out_.contains("sliding_window");
    rope();
    tensors();
    special_ids();
    refuse_experts();
    return std::move(out_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", a_.gguf, name); }
  void integer(const char* to, std::string_view from) {
    if (const auto value = m_.find_integer(key(from))) out_[to] = *value;
  }
  void real(const char* to, std::string_view from) {
    if (const auto value = m_.find_real(key(from))) out_[to] = *value;
  }

  void rope() {
    bj::object scaling;
    const std::string type(m_.find_string(key("rope.scaling.type")).value_or("none"));
    if (type != "none") {
      scaling["rope_type"] = type;
      if (const auto factor = m_.find_real(key("rope.scaling.factor"))) {
        scaling["factor"] = *factor;
        // ggml multiplies this with YaRN's own factor; Hugging Face replaces that.
        const double extra = m_.find_real(key("rope.scaling.attn_factor")).value_or(1);
        if (extra != 1) scaling["attention_factor"] = extra * (0.1 * std::log(*factor) + 1);
      }
      if (const auto n = m_.find_integer(key("rope.scaling.original_context_length"))) {
        scaling["original_max_position_embeddings"] = *n;
      }
    } else if (const TensorEntry* divisors = find_tensor(gguf_, kRopeDivisors)) {
      scaling["rope_type"] = "per_pair";
      scaling["divisors"] = numbers(*divisors);
    }
    if (!scaling.empty()) out_["rope_scaling"] = scaling;
    // A file without key_length means hidden_size / heads; the model knows that as well.
    const auto rotated = m_.find_integer(key("rope.dimension_count"));
    const auto head_dim = m_.find_integer(key("attention.key_length"));
    if (rotated && head_dim && *head_dim > 0 && *rotated < *head_dim) {
      out_["partial_rotary_factor"] =
          static_cast<double>(*rotated) / static_cast<double>(*head_dim);
    }
  }

  bj::array numbers(const TensorEntry& entry) const {
    if (entry.dtype != WireDType::kF32 || entry.shape.size() != 1 || entry.shape[0] > 4096) {
      throw_user_error("{}: tensor {} is {} {}, expected a few F32", m_.file(), entry.name,
                       to_string(entry.dtype), shape_text(entry.shape));
    }
    bj::array out;
    for (int64_t i = 0; i < entry.shape[0]; ++i) {
      const float value = dense_element(entry.dtype, entry.bytes, i);
      if (!std::isfinite(value)) {
        throw_user_error("{}: {}[{}] is {}", m_.file(), entry.name, i, value);
      }
      out.push_back(double{value});
    }
    return out;
  }

  void tensors() {
    if (const TensorEntry* table = find_tensor(gguf_, "token_embd.weight")) {
      out_["vocab_size"] = table->shape.front();
    }
    out_["tie_word_embeddings"] = find_tensor(gguf_, "output.weight") == nullptr;
    // Qwen2's biases come with its architecture.
    out_["attention_bias"] = find_tensor(gguf_, "blk.0.attn_output.bias") != nullptr;
  }

  void special_ids() {
    bj::array eos;
    for (const char* name : {"eos", "eot"}) {
      const auto id = m_.find_integer(fmt::format("tokenizer.ggml.{}_token_id", name));
      if (id && std::find(eos.begin(), eos.end(), *id) == eos.end()) eos.push_back(*id);
    }
    if (!eos.empty()) out_["eos_token_id"] = eos;
    if (const auto id = m_.find_integer("tokenizer.ggml.bos_token_id")) out_["bos_token_id"] = *id;
    if (const auto id = m_.find_integer("tokenizer.ggml.padding_token_id")) {
      out_["pad_token_id"] = *id;
    }
  }

  void refuse_experts() const {
    const int64_t count = m_.find_integer(key("expert_count")).value_or(0);
    if (count == 0) return;
    throw_user_error("{}: {} is {}, but only dense models are read from GGUF files", m_.file(),
                     key("expert_count"), count);
  }

  const GgufContents& gguf_;
  const GgufMetadata& m_;
  const Architecture& a_;
  bj::object out_;
};

void refuse_parts(const GgufMetadata& m) {
  const int64_t count = m.find_integer("split.count").value_or(1);
  if (count <= 1) return;
  throw_user_error("{}: one of {} parts of a model; merge them first (gguf-split --merge)",
                   m.file(), count);
}

template <size_t kCount>
std::string renamed(const NamePair (&names)[kCount], std::string_view stem) {
  for (const auto& [from, to] : names) {
    if (stem == from) return std::string(to);
  }
  return {};
}

// Empty for an unknown name.
std::string huggingface_name(std::string_view name) {
  const size_t last_dot = name.rfind('.');
  if (last_dot == name.npos) return {};
  const std::string_view stem = name.substr(0, last_dot), kind = name.substr(last_dot);
  if (kind != ".weight" && kind != ".bias") return {};
  std::string prefix, to = renamed(kNames, stem);
  constexpr std::string_view kBlock = "blk.";
  if (to.empty() && stem.starts_with(kBlock)) {
    const size_t dot = stem.find('.', kBlock.size());
    if (dot == stem.npos) return {};
    const std::string_view layer = stem.substr(kBlock.size(), dot - kBlock.size());
    prefix = fmt::format("model.layers.{}.", layer);
    to = renamed(kLayerNames, stem.substr(dot + 1));
  }
  return to.empty() ? to : (prefix + to).append(kind);
}

void mark_interleaved(const GgufMetadata& m, const Architecture& a, TensorEntry& entry) {
  const bool is_q = entry.name.find(".self_attn.q_proj.") != entry.name.npos;
  const bool is_k = entry.name.find(".self_attn.k_proj.") != entry.name.npos;
  if (!a.interleaves_qk || (!is_q && !is_k)) return;
  const auto key = [&](const char* name) { return fmt::format("{}.attention.{}", a.gguf, name); };
  const int64_t num_q_heads = m.find_integer(key("head_count")).value_or(0);
  const int64_t num_heads =
      is_q ? num_q_heads : m.find_integer(key("head_count_kv")).value_or(num_q_heads);
  const int64_t rows = entry.shape.front();
  if (num_heads < 1 || rows % num_heads != 0 || rows / num_heads % 2 != 0) {
    throw_user_error("{}: {} has {} rows, which {} heads of pairs do not divide", m.file(),
                     printable(entry.name), rows, num_heads);
  }
  entry.num_interleaved_heads = num_heads;
}

}  // namespace

bool is_model_file(const std::string& model) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(model, ignored);
}

Result<HfConfig> gguf_config(const GgufContents& gguf) {
  try {
    refuse_parts(gguf.metadata);
    const bj::object config = ConfigBuilder(gguf, find_architecture(gguf.metadata)).build();
    return HfConfig::parse(bj::serialize(config), gguf.metadata.file());
  } catch (const UserError& e) {
    return e.error;
  }
}

Status rename_gguf_tensors(GgufContents& gguf) {
  try {
    refuse_parts(gguf.metadata);
    const Architecture& architecture = find_architecture(gguf.metadata);
    std::erase_if(gguf.tensors, [](const TensorEntry& e) { return e.name == kRopeDivisors; });
    for (TensorEntry& entry : gguf.tensors) {
      std::string name = huggingface_name(entry.name);
      if (name.empty()) continue;
      entry.name = std::move(name);
      mark_interleaved(gguf.metadata, architecture, entry);
    }
  } catch (const UserError& e) {
    return e.error;
  }
  return Ok{};
}

}  // namespace briar
