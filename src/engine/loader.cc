#include "engine/loader.h"

#include "base/thread_pool.h"
#include "models/registry.h"
#include "weights/checkpoint.h"
#include "weights/gguf_model.h"
#include "weights/hf_config.h"
#include "weights/weight_loader.h"

namespace briar {
namespace {

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw UserError(result.error());
  return std::move(result).value();
}

void check_range(const char* name, int64_t value, int64_t min, int64_t max) {
  if (value < min || value > max) {
    throw UserError(
        Error{.message = fmt::format("{} is {}, expected {} to {}", name, value, min, max),
              .param = name});
  }
}

void check_options(const EngineOptions& o) {
  if (o.device != "cpu")
    throw_user_error("--device {}: this build has the device cpu only", o.device);
  check_range("--threads", o.num_threads, 0, 16 * num_physical_cores());
  check_range("--page-size", o.page_size, 1, 65536);
  check_range("--chunk", o.chunk, 1, 1 << 20);
  check_range("--max-batch-tokens", o.max_batch_tokens, 1, 1 << 20);
  check_range("--max-seqs", o.max_seqs, 1, 1 << 16);
  check_range("--max-model-len", o.max_model_len, 0, int64_t{1} << 30);
  check_range("--kv-cache-bytes", o.kv_cache_bytes, 0, int64_t{1} << 50);
}

}  // namespace

LoadedModel load_model(const EngineOptions& options) {
  check_options(options);
  LoadedModel out;
  out.precision = value_or_throw(parse_precision(options.precision != "auto"    ? options.precision
                                                 : is_model_file(options.model) ? "native"
                                                                                : "bf16"));
  out.kv_dtype = options.kv_precision.empty()
                     ? out.precision.kv
                     : value_or_throw(parse_kv_precision(options.kv_precision));
  const ModelConfig config{value_or_throw(HfConfig::open(options.model)), out.precision};
  const auto checkpoint = value_or_throw(Checkpoint::open(options.model));
  out.device = make_cpu_device(options.num_threads);
  out.stream = out.device->make_stream();

  WeightLoader plan = WeightLoader::plan(*checkpoint);
  const std::unique_ptr<Model> planned = make_model(config, plan);
  plan.finish();
  out.memory = plan_memory(options, *planned, out.kv_dtype, plan.arena_bytes(),
                           out.device->available_bytes());
  out.memory.weight_note = plan.describe_blocks();
  if (options.on_plan) options.on_plan(out.memory.describe(options));

  out.weights = std::make_unique<Arena>(*out.device, plan.arena_bytes(), "weights");
  WeightLoader load =
      WeightLoader::load(*checkpoint, *out.weights, *out.stream, options.on_load_progress);
  out.model = make_model(config, load);
  load.finish();
  return out;
}

}  // namespace briar
