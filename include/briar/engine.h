// Briar's engine: token ids in, token ids out. It has never heard of a chat, a role or JSON; the
// server and the command line are built on this header alone.
//
//   auto engine = briar::Engine::create({.model = "models/tiny-harmony"});
//   engine->submit({.prompt = {1, 2, 3}, .on_output = [](const briar::Output& o) { ... }});
//   engine->drain();
//
// Who owns what, the states of a request and what holds between steps: docs/engine_contract.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace briar {

struct EngineOptions {
  std::string model = {};  // model folder or GGUF file
  std::string device = "cpu";
  std::string precision = "auto";  // docs/numerics.md; auto = native for a GGUF file, else bf16
  std::string kv_precision = {};   // fp32, bf16; empty = what `precision` says
  int num_threads = 0;             // compute threads; 0 = one a physical core
  int page_size = 16;              // tokens of a KV page
  int chunk = 512;                 // most tokens of one sequence in a step
  int max_batch_tokens = 2048;     // most tokens of all sequences in a step
  int max_seqs = 64;               // most sequences running at once
  int64_t max_waiting = 0;         // most requests waiting; 0 = no bound
  int64_t max_model_len = 0;   // most tokens of a sequence; 0 = the model's, or what memory allows
  int64_t kv_cache_bytes = 0;  // 0 = from the free memory
  // Ids from here on are never sampled nor listed as likely: a checkpoint's vocabulary may be
  // padded beyond the tokenizer's. 0 = all ids of the model.
  int64_t num_token_ids = 0;
  // Pages of earlier requests serve later ones that begin with the same tokens.
  bool caches_prefixes = true;
  // Step n + 1 is planned while step n runs. Results are the same either way.
  bool overlaps = true;
  std::string step_trace = {};     // file for Chrome/Perfetto trace events of every step
  bool checks_invariants = false;  // after every step; for tests
  // Called during create(): with the memory plan (several lines of text) before anything large is
  // allocated, and while weights load.
  std::function<void(const std::string& plan)> on_plan = {};
  std::function<void(int64_t done_bytes, int64_t total_bytes)> on_load_progress = {};
};

struct LogitBias {
  int32_t token_id = -1;
  float bias = 0;
};

// How the next token is drawn from the model's logits, in this order:
//   repetition_penalty, frequency_penalty, presence_penalty, logit_bias, allowed_token_ids,
//   min_tokens and the constraint (kernels/sampling/logit_adjustment.h),
//   temperature, top_k, top_p, min_p (kernels/sampling/sampler.h).
// Log-probabilities are of the model's own distribution, before all of it.
struct SamplingParams {
  float temperature = 1;  // 0 = greedy
  int32_t top_k = 0;      // 0 = off
  float top_p = 1;
  float min_p = 0;
  uint64_t seed = 0;    // the same seed, prompt and parameters give the same tokens in any company
  uint32_t choice = 0;  // index among n choices of one prompt: independent draws
  float repetition_penalty = 1;  // of tokens in the prompt or the answer: more than 1 discourages
  float frequency_penalty = 0;   // taken from a token's logit for each time the answer has it
  float presence_penalty = 0;    // taken once if the answer has it at all
  std::vector<LogitBias> logit_bias = {};       // added to the logits of these ids
  std::vector<int32_t> allowed_token_ids = {};  // not empty: no other id is drawn
  int64_t min_tokens = 0;  // before this many new tokens no stop_token_id is drawn and stops_after
                           // is not heeded
};

// Says which tokens may come next, such as a grammar does. One object serves one request; the
// engine calls it from one thread at a time, while the device runs.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // Sets the mask: bit t % 32 of mask[t / 32] is 1 where id t may come next. All bits zero: the
  // request ends with an error.
  virtual void fill_mask(std::span<uint32_t> mask) = 0;
  // A token that the mask allowed was drawn.
  virtual void accept(int32_t token_id) = 0;
};

enum class FinishReason {
  kNone,
  kStop,       // a stop id, or stops_after said so
  kLength,     // max_tokens, or the model's length
  kCancelled,  // by cancel(), or because on_output took no more (`error` says so)
  kDeadline,
  kError
};
const char* to_string(FinishReason reason);

struct TokenLogprobs {
  int32_t token_id = -1;
  float logprob = 0;  // natural log of the probability under softmax(logits)
};

struct OutputToken {
  int32_t token_id = -1;
  float logprob = 0;                    // only if asked for
  std::vector<TokenLogprobs> top = {};  // the likeliest tokens at this place, best first
};

// The KV of a request's tokens, held for requests that go on from there; see Request::kv. Holds
// pages: let go of it soon. It outlives its engine harmlessly.
class KvHandle {
 public:
  virtual ~KvHandle() = default;
  virtual int64_t num_tokens() const = 0;
  // Of the model, its precisions and the layout of a page: handles are good only where it is equal.
  virtual uint64_t fingerprint() const = 0;
};

// What a callback gets: at least one new token, or the end, or both.
struct Output {
  uint64_t request_id = 0;
  std::vector<OutputToken> tokens = {};  // new since the last call; a stop token is included
  std::vector<float> prompt_logprobs =
      {};  // with the last chunk of the prompt: of prompt[1], prompt[2], ...
  // If asked for: the last layer's normalised hidden states [n, hidden_size], one for each token
  // that was run and not yet reported, in order. The last generated token is never run.
  std::vector<float> hidden_states = {};
  int64_t num_cached_tokens = 0;  // of the prompt, taken from the prefix cache or from `kv`
  double queue_ms = 0;            // from submit() until its first step began
  FinishReason finish_reason = FinishReason::kNone;  // anything else: this is the last call
  std::string error = {};                            // for kError, and kCancelled by the engine
  std::shared_ptr<const KvHandle> kv = {};           // with the last call, if asked for
};

struct Request {
  std::vector<int32_t> prompt = {};  // at least one id
  SamplingParams sampling = {};
  int64_t max_tokens = 256;                  // new tokens at most; 0 = prefill only
  std::vector<int32_t> stop_token_ids = {};  // generation ends after one of these
  // Sees every new token in order, on the engine's thread; true ends the generation after it (stop
  // strings, which only the caller can see).
  std::function<bool(int32_t token_id)> stops_after = {};
  std::shared_ptr<TokenConstraint> constraint = {};
  int32_t num_top_logprobs =
      -1;  // -1 = no log-probabilities; 0 = of the sampled tokens; n = and of the n likeliest
  bool wants_prompt_logprobs = false;  // such a request takes nothing from the prefix cache
  bool wants_hidden_states = false;    // nor does such a one
  // Lower is served first, and takes the place of a running request with a higher one if it must.
  int32_t priority = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline = {};  // ends with kDeadline
  std::string cache_salt = {};  // requests share cached pages only with others of the same salt
  // The prompt begins with this handle's tokens: their KV is not computed again. If the engine had
  // to give the pages up, or the tokens or the fingerprint differ, it is: the answer is the same.
  std::shared_ptr<const KvHandle> kv = {};
  bool keeps_kv = false;  // the last output carries a handle
  // Runs on the engine's thread: hand the output on, do not wait and do not call drain() in it.
  // submit() and cancel() are allowed. false = the reader takes no more: the request is cancelled.
  std::function<bool(Output output)> on_output = {};
};

struct EngineStats {
  uint64_t num_steps = 0;
  uint64_t num_prompt_tokens = 0;  // run through the model, recomputation included
  uint64_t num_generated_tokens = 0;
  uint64_t num_preemptions = 0;
  uint64_t num_cached_tokens = 0;   // prompt tokens taken from the prefix cache instead
  uint64_t num_queried_tokens = 0;  // prompt tokens of admitted requests, found in the cache or not
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_pages = 0;         // of all kinds
  int64_t num_free_pages = 0;    // that no running sequence holds, cached or not
  double device_busy_us = 0;     // in steps
  double device_idle_us = 0;     // between steps while there was work
  double engine_busy_us = 0;     // planning and handing out
  uint64_t num_moot_tokens = 0;  // computed for sequences that had ended by then
};

// What the caller may need to know of the model.
struct ModelDescription {
  std::string architecture = {};
  std::string model_type = {};  // "gpt_oss"
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t max_model_len = 0;    // prompt and answer together, as this engine is set up
  int64_t bytes_per_token = 0;  // weights that decoding one token of one sequence reads
};

// All calls are thread-safe. The one engine of a process that runs a model is made by create();
// another implementation may stand in front of a remote one.
class Engine {
 public:
  // Loads the model. Throws UserError for anything wrong with the folder, the options or the
  // memory.
  static std::unique_ptr<Engine> create(const EngineOptions& options);
  // Cancels what is running and waits for it.
  virtual ~Engine() = default;

  virtual const ModelDescription& model() const = 0;
  // Queues a request and returns its id; an empty or overlong prompt, an id outside the vocabulary
  // or a parameter out of range is an error (400), and so is a full queue (429).
  virtual Result<uint64_t> submit(Request request) = 0;
  // The request ends with kCancelled within one step; unknown or finished ids are ignored.
  virtual void cancel(uint64_t request_id) = 0;
  // Waits until no request is left. If the engine failed (a bug of ours), throws its CheckError.
  virtual void drain() = 0;
  virtual EngineStats stats() const = 0;
};

}  // namespace briar
