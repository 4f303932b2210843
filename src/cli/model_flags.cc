#include "cli/model_flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>

#include "base/file.h"

namespace briar {

void print_note_text(const std::string& text) { std::fputs(text.c_str(), stderr); }

namespace {

void check_choice(const char* flag, const std::string& value,
                  std::initializer_list<const char*> allowed, const char* otherwise) {
  for (const char* a : allowed) {
    if (value == a) return;
  }
  throw UserError(
      Error{.message = fmt::format("{} {}: {}", flag, value, otherwise), .param = flag});
}

// A bar on a terminal; on anything else, one line at the end.
class LoadProgress {
 public:
  void update(int64_t done, int64_t total) {
    const int percent = total == 0 ? 100 : static_cast<int>(done * 100 / total);
    if (percent == last_percent_) return;
    last_percent_ = percent;
    const bool is_last = done == total;
    if (isatty(STDERR_FILENO)) {
      constexpr int kWidth = 40;
      const auto filled = static_cast<size_t>(percent * kWidth / 100);
      print_note("\rloading weights [{}{}] {:3}%{}", std::string(filled, '#'),
                 std::string(kWidth - filled, ' '), percent, is_last ? "\n" : "");
    } else if (is_last) {
      print_note("weights loaded: {:.1f} MiB\n", static_cast<double>(total) / (1 << 20));
    }
  }

 private:
  int last_percent_ = -1;
};

}  // namespace

void check_flags(const ModelFlags& f) {
  if (f.engine.model.empty())
    throw UserError(Error{.message = "--model is missing", .param = "--model"});
  const bool is_fp32 = f.engine.precision == "fp32";
  const char* head =
      is_fp32 ? "the head follows --precision fp32" : "the CPU backend has a bf16 head";
  if (!f.head_precision.empty())
    check_choice("--head-precision", f.head_precision, {is_fp32 ? "fp32" : "bf16"}, head);
  check_choice("--batch-invariant", f.batch_invariant, {"on", "off"}, "expected on or off");
  check_choice("--overlap", f.overlap, {"on", "off"}, "expected on or off");
  check_choice("--cuda-graphs", f.cuda_graphs, {"off"}, "the CPU backend has none; expected off");
  check_choice("--prefix-cache", f.prefix_cache, {"on", "off"}, "expected on or off");
}

std::unique_ptr<Engine> create_engine(const ModelFlags& flags) {
  check_flags(flags);
  EngineOptions options = flags.engine;
  options.caches_prefixes = flags.prefix_cache == "on";
  options.overlaps = flags.overlap == "on";
  if (!flags.quiet) {
    options.on_plan = [](const std::string& plan) { print_note("{}\n", plan); };
    options.on_load_progress = [progress = LoadProgress()](int64_t done, int64_t total) mutable {
      progress.update(done, total);
    };
  }
  return Engine::create(options);
}

std::string read_model_type(const std::string& model) {
  auto config = HfConfig::open(model);
  if (!config) throw UserError(config.error());
  return config->find_string("model_type").value_or("gpt_oss");
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& model,
                                                const std::string& model_type) {
  bool has_files = file_exists(model + "/tokenizer.json");
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(model, ignored)) {
    has_files |= entry.path().extension() == ".tiktoken";
  }
  if (!has_files && model_type == "gpt_oss") return Tokenizer::bundled_o200k_harmony();
  auto tokenizer = Tokenizer::load(model);
  if (!tokenizer) throw UserError(tokenizer.error());
  return *tokenizer;
}

GenerationConfig load_generation_config(const std::string& model) {
  auto config = HfConfig::open(model);
  if (!config) throw UserError(config.error());
  auto generation = GenerationConfig::open(model, *config);
  if (!generation) throw UserError(generation.error());
  return *generation;
}

SamplingParams sampling_params(const SamplingFlags& flags, const GenerationConfig& config) {
  SamplingParams p;
  // Hugging Face's meaning: sampling without a temperature is at 1, and no sampling is greedy.
  p.temperature = static_cast<float>(
      flags.temperature.value_or(config.do_sample ? config.temperature.value_or(1.0) : 0.0));
  p.top_p = static_cast<float>(flags.top_p.value_or(config.top_p.value_or(1.0)));
  p.min_p = static_cast<float>(flags.min_p.value_or(config.min_p.value_or(0.0)));
  p.top_k = static_cast<int32_t>(
      std::clamp<int64_t>(flags.top_k.value_or(config.top_k.value_or(0)), -1, INT32_MAX));
  p.seed =
      flags.seed ? *flags.seed : (uint64_t{std::random_device{}()} << 32 | std::random_device{}());
  return p;
}

}  // namespace briar
