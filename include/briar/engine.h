// Briar's engine: token ids in, token ids out. It has never heard of a chat, a role or JSON; the
// server and the command line are built on this header alone.
//
//   auto engine = briar::Engine::create({.model = "models/tiny-harmony"});
//   engine->submit({.prompt = {1, 2, 3}, .on_output = [](const briar::Output& o) { ... }});
//   engine->drain();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace briar {

struct EngineOptions {
  std::string model;  // model folder or GGUF file
  std::string device = "cpu";
  std::string precision = "auto";  // docs/numerics.md; auto = native for a GGUF file, else bf16
  std::string kv_precision;        // fp32, bf16; empty = what `precision` says
  int num_threads = 0;             // compute threads; 0 = one a physical core
  int page_size = 16;              // tokens of a KV page
  int chunk = 512;                 // most tokens of one sequence in a step
  int max_batch_tokens = 2048;     // most tokens of all sequences in a step
  int max_seqs = 64;               // most sequences running at once
  int64_t max_model_len = 0;   // most tokens of a sequence; 0 = the model's, or what memory allows
  int64_t kv_cache_bytes = 0;  // 0 = from the free memory
  // Ids from here on are never sampled nor listed as likely: a checkpoint's vocabulary may be
  // padded beyond the tokenizer's. 0 = all ids of the model.
  int64_t num_token_ids = 0;
  // Pages of earlier requests serve later ones that begin with the same tokens.
  bool caches_prefixes = true;
  bool checks_invariants = false;  // after every step; for tests
  // Called during create(): with the memory plan (several lines of text) before anything large is
  // allocated, and while weights load.
  std::function<void(const std::string& plan)> on_plan;
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_load_progress;
};

// Semantics of temperature, top_k, top_p, min_p: kernels/sampling/sampler.h.
struct SamplingParams {
  float temperature = 1;  // 0 = greedy
  int32_t top_k = 0;      // 0 = off
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;    // the same seed, prompt and parameters give the same tokens in any company
  uint32_t choice = 0;  // index among n choices of one prompt: independent draws
};

enum class FinishReason { kNone, kStop, kLength, kCancelled, kError };
const char* to_string(FinishReason reason);

struct TokenLogprobs {
  int32_t token_id = -1;
  float logprob = 0;  // natural log of the probability under softmax(logits)
};

struct OutputToken {
  int32_t token_id = -1;
  float logprob = 0;               // only if asked for
  std::vector<TokenLogprobs> top;  // the likeliest tokens at this place, best first
};

// What a callback gets: at least one new token, or the end, or both.
struct Output {
  uint64_t request_id = 0;
  std::vector<OutputToken> tokens;  // new since the last call; a stop token is included
  std::vector<float>
      prompt_logprobs;            // with the last chunk of the prompt: of prompt[1], prompt[2], ...
  int64_t num_cached_tokens = 0;  // of the prompt, taken from the prefix cache
  FinishReason finish_reason = FinishReason::kNone;  // anything else: this is the last call
  std::string error;                                 // for kError
};

struct Request {
  std::vector<int32_t> prompt;  // at least one id
  SamplingParams sampling;
  int64_t max_tokens = 256;  // new tokens at most; 0 = prefill only (for prompt log-probabilities)
  std::vector<int32_t> stop_token_ids;  // generation ends after one of these
  int32_t num_top_logprobs =
      -1;  // -1 = no log-probabilities; 0 = of the sampled tokens; n = and of the n likeliest
  bool wants_prompt_logprobs = false;  // such a request takes nothing from the prefix cache
  std::string cache_salt;  // requests share cached pages only with others of the same salt
  // Runs on the engine's thread: hand the output on, do not wait and do not call drain() in it.
  // submit() and cancel() are allowed.
  std::function<void(const Output&)> on_output;
};

struct EngineStats {
  uint64_t num_steps = 0;
  uint64_t num_prompt_tokens = 0;  // run through the model, recomputation included
  uint64_t num_generated_tokens = 0;
  uint64_t num_preemptions = 0;
  uint64_t num_cached_tokens = 0;  // prompt tokens taken from the prefix cache instead
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_pages = 0;       // of all kinds
  int64_t num_free_pages = 0;  // that no running sequence holds, cached or not
};

// What the caller may need to know of the model.
struct ModelDescription {
  std::string architecture;
  std::string model_type;  // "gpt_oss"
  int64_t vocab_size = 0;
  int64_t max_model_len = 0;    // prompt and answer together, as this engine is set up
  int64_t bytes_per_token = 0;  // weights that decoding one token of one sequence reads
};

class Engine {
 public:
  // Loads the model. Throws UserError for anything wrong with the folder, the options or the
  // memory.
  static std::unique_ptr<Engine> create(const EngineOptions& options);
  // Cancels what is running and waits for it.
  ~Engine();

  const ModelDescription& model() const;

  // Thread-safe. Queues a request and returns its id; an empty or overlong prompt, an id outside
  // the vocabulary or a parameter out of range is an error.
  Result<uint64_t> submit(Request request);
  // Thread-safe. The request ends with kCancelled within one step; unknown or finished ids are
  // ignored.
  void cancel(uint64_t request_id);
  // Waits until no request is left. If the engine failed (a bug of ours), throws its CheckError.
  void drain();
  EngineStats stats() const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace briar
