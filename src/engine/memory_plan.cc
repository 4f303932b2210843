#include "engine/memory_plan.h"

#include <algorithm>

#include "engine/sampling_stage.h"
#include "kvcache/sequence_pages.h"

namespace briar {
namespace {

// One pass over the head's weights serves this many rows; more rows would only take memory.
constexpr int32_t kMaxLogitRows = 64;
// Left to the rest of the machine: the operating system's own estimate of free memory is not exact.
constexpr double kReserve = 0.05;
// Without --kv-cache-bytes a server takes at most this share of what the weights leave.
constexpr double kKvShare = 0.5;
constexpr int64_t kMaxAutomaticKvBytes = int64_t{8} << 30;

std::string human(int64_t bytes) {
  if (bytes >= (int64_t{1} << 30))
    return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// What the runner derives from a packet: a few words a token, and a page-table row a sequence and
// kind.
int64_t step_batch_bytes(const EngineOptions& o, int64_t max_model_len) {
  const int64_t pages = (max_model_len + o.page_size - 1) / o.page_size + 1;
  return 8 * Arena::footprint(DType::kInt32, o.max_batch_tokens) +
         kNumKvKinds * Arena::footprint(DType::kInt32, pages * o.max_seqs) +
         3 * Arena::footprint(DType::kInt32, o.max_seqs + 1);
}

int32_t window_of(const ModelInfo& info, size_t kind) {
  return kind == static_cast<size_t>(KvKind::kWindow) ? info.window : 0;
}

int64_t pages_of_one(const EngineOptions& o, const ModelInfo& info, size_t kind,
                     int64_t num_tokens) {
  return SequencePages::max_pages(o.page_size, window_of(info, kind), num_tokens, o.chunk);
}

// Bytes that sequences of `num_tokens` tokens take, all kinds.
int64_t kv_bytes(const EngineOptions& o, const ModelInfo& info, const MemoryPlan& plan,
                 int64_t num_tokens) {
  int64_t bytes = 0;
  for (size_t kind = 0; kind < kNumKvKinds; ++kind) {
    bytes += pages_of_one(o, info, kind, num_tokens) * plan.page_bytes[kind];
  }
  return bytes;
}

// The longest sequence whose pages take at most `budget` bytes.
int64_t longest_fitting(const EngineOptions& o, const ModelInfo& info, const MemoryPlan& plan,
                        int64_t budget) {
  int64_t low = 0, high = info.max_model_len;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (kv_bytes(o, info, plan, middle) <= budget) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// Window layers get what all sequences can ever hold at once; full layers get the rest of the
// budget.
void divide_pages(const EngineOptions& o, const ModelInfo& info, int64_t budget, MemoryPlan& plan) {
  const auto full = static_cast<size_t>(KvKind::kFull),
             window = static_cast<size_t>(KvKind::kWindow);
  auto all_of = [&](size_t kind) {
    return plan.page_bytes[kind] == 0
               ? 0
               : pages_of_one(o, info, kind, plan.max_model_len) * o.max_seqs;
  };
  int64_t window_pages = all_of(window);
  const int64_t one_full = plan.page_bytes[full] * pages_of_one(o, info, full, plan.max_model_len);
  if (plan.page_bytes[window] > 0) {
    window_pages = std::min(window_pages, (budget - one_full) / plan.page_bytes[window]);
  }
  const int64_t rest = budget - window_pages * plan.page_bytes[window];
  const int64_t full_pages =
      plan.page_bytes[full] == 0 ? 0 : std::min(all_of(full), rest / plan.page_bytes[full]);
  constexpr int64_t kMaxPages = (int64_t{1} << 31) - 1;
  plan.num_pages[window] = static_cast<int32_t>(std::min(window_pages, kMaxPages / o.page_size));
  plan.num_pages[full] = static_cast<int32_t>(std::min(full_pages, kMaxPages / o.page_size));
  for (size_t kind = 0; kind < kNumKvKinds; ++kind)
    plan.kv_bytes += plan.num_pages[kind] * plan.page_bytes[kind];
}

}  // namespace

std::string MemoryPlan::describe(const EngineOptions& o) const {
  std::string text = fmt::format("memory plan, {} ({} free):\n", o.device, human(available_bytes));
  text += fmt::format("  {:<12}{:>12}\n", "weights", human(weight_bytes));
  text += fmt::format(
      "  {:<12}{:>12}   {} full and {} window pages of {} tokens; sequences up to {} tokens\n",
      "KV cache", human(kv_bytes), num_pages[0], num_pages[1], o.page_size, max_model_len);
  text += fmt::format("  {:<12}{:>12}   steps of up to {} tokens\n", "workspace",
                      human(workspace_bytes), o.max_batch_tokens);
  text += fmt::format("  {:<12}{:>12}   {} rows\n", "logits", human(logits_bytes), num_logit_rows);
  text += fmt::format("  {:<12}{:>12}", "total", human(total_bytes()));
  return text;
}

MemoryPlan plan_memory(const EngineOptions& o, const Model& model, DType kv_dtype,
                       int64_t weight_bytes, int64_t available_bytes) {
  const ModelInfo& info = model.info();
  MemoryPlan plan;
  plan.available_bytes = available_bytes;
  plan.weight_bytes = weight_bytes;
  plan.workspace_bytes = model.workspace_bytes(o.max_batch_tokens) +
                         // Hidden states for the head, and as many again for requests that want
                         // to see them.
                         2 * Arena::footprint(DType::kFp32, o.max_batch_tokens * info.hidden_size);
  plan.workspace_bytes += step_batch_bytes(
      o, o.max_model_len > 0 ? std::min(o.max_model_len, info.max_model_len) : info.max_model_len);
  plan.num_logit_rows = std::min(kMaxLogitRows, static_cast<int32_t>(o.max_batch_tokens));
  plan.logits_bytes = Arena::footprint(DType::kFp32, plan.num_logit_rows * info.vocab_size) +
                      sampling_stage_bytes(plan.num_logit_rows, info.vocab_size);
  for (const KvKind kind : info.layer_kinds) {
    plan.page_bytes[static_cast<size_t>(kind)] +=
        2 * o.page_size * dtype_bytes(kv_dtype, info.num_kv_heads * info.head_dim);
  }
  const auto usable = static_cast<int64_t>(static_cast<double>(available_bytes) * (1 - kReserve));
  const int64_t rest = usable - plan.total_bytes();
  const int64_t automatic =
      std::min(static_cast<int64_t>(static_cast<double>(rest) * kKvShare), kMaxAutomaticKvBytes);
  const int64_t budget = o.kv_cache_bytes > 0 ? o.kv_cache_bytes : std::max<int64_t>(0, automatic);
  const int64_t fitting = longest_fitting(o, info, plan, budget);
  plan.max_model_len =
      o.max_model_len > 0 ? std::min(o.max_model_len, info.max_model_len) : fitting;
  const bool fits_one = plan.max_model_len >= 1 && plan.max_model_len <= fitting;
  if (fits_one) divide_pages(o, info, budget, plan);
  if (rest < 0 || !fits_one || plan.total_bytes() > usable) {
    if (!fits_one)
      plan.kv_bytes = kv_bytes(o, info, plan, std::max<int64_t>(1, plan.max_model_len));
    throw_user_error(
        "the model does not fit: it needs {} (weights {}, KV cache {} for one sequence of {} "
        "tokens, workspace {}, logits {}) and {} are "
        "free{}; try a smaller --precision, --max-model-len, --max-batch-tokens or --max-seqs",
        human(plan.total_bytes()), human(plan.weight_bytes), human(plan.kv_bytes),
        std::max<int64_t>(1, plan.max_model_len), human(plan.workspace_bytes),
        human(plan.logits_bytes), human(available_bytes),
        o.kv_cache_bytes > 0 ? fmt::format(", of which --kv-cache-bytes allows the KV cache {}",
                                           human(o.kv_cache_bytes))
                             : "");
  }
  return plan;
}

}  // namespace briar
