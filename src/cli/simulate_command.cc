#include "cli/simulate_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/result.h"
#include "cli/trace_file.h"
#include "kvcache/sequence_pages.h"

namespace briar {
namespace {

namespace bj = boost::json;

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<size_t>(at)];
}

bj::object percentiles(const std::vector<double>& values) {
  return {{"p50", percentile(values, 0.5)}, {"p99", percentile(values, 0.99)}};
}

void check_options(const SimulateOptions& o) {
  auto check = [](const char* flag, int64_t value, int64_t min, int64_t max) {
    if (value < min || value > max) {
      throw UserError(
          Error{.message = fmt::format("{} is {}, expected {} to {}", flag, value, min, max),
                .param = flag});
    }
  };
  if (o.trace.empty() == (o.requests == 0)) throw_user_error("give either --trace or --requests");
  check("--requests", o.requests, 0, 10'000'000);
  check("--pages", o.pages, 0, INT32_MAX);
  check("--page-size", o.page_size, 1, 65536);
  check("--limit", o.limit, 0, INT64_MAX);
  check("--window", o.window, 0, 1 << 20);
  check("--max-seqs", o.max_seqs, 1, 1 << 16);
  check("--max-batch-tokens", o.max_batch_tokens, 1, 1 << 20);
  check("--chunk", o.chunk, 1, 1 << 20);
  check("--draft-tokens", o.draft_tokens, 0, std::min(o.chunk - 1, 64));
  if (!(o.load >= 0 && o.load <= 100))
    throw_user_error("--load is {}, expected more than 0 and at most 100", o.load);
}

SimulationConfig make_config(const SimulateOptions& o, const std::vector<TraceRequest>& trace) {
  SimulationConfig c;
  c.one_after_another = o.serial;
  c.overlaps = o.overlaps;
  c.checks_invariants = o.checks;
  c.scheduler = {.max_seqs = o.max_seqs,
                 .max_batch_tokens = o.max_batch_tokens,
                 .chunk = o.chunk,
                 .page_size = o.page_size,
                 .num_pages = {},
                 .window = {0, o.window},
                 .caches_prefixes = o.prefix_cache,
                 .num_draft_tokens = o.draft_tokens};
  int64_t all = 0, longest = 0;
  for (const TraceRequest& r : trace) {
    const int64_t tokens = r.prompt_len + std::max<int64_t>(1, r.output_len);
    all += SequencePages::max_pages(o.page_size, 0, tokens, o.chunk);
    longest = std::max(longest, tokens);
  }
  const int64_t most = o.pages > 0 ? o.pages : std::min<int64_t>(all + 1, INT32_MAX);
  c.scheduler.num_pages[0] = static_cast<int32_t>(most);
  if (o.window > 0) c.scheduler.num_pages[1] = static_cast<int32_t>(most);
  const int64_t needed = SequencePages::max_pages(o.page_size, 0, longest, o.chunk);
  if (needed > most)
    throw_user_error("--pages is {}, but the longest request ({} tokens) needs {}", most, longest,
                     needed);
  return c;
}

// Planning of the steps with nearly the most running sequences.
bj::object busiest_planning(const SimulationResult& r) {
  const int64_t most =
      r.plan_seqs.empty() ? 0 : *std::max_element(r.plan_seqs.begin(), r.plan_seqs.end());
  std::vector<double> times;
  for (size_t i = 0; i < r.plan_us.size(); ++i) {
    if (r.plan_seqs[i] * 10 >= most * 9) times.push_back(r.plan_us[i]);
  }
  bj::object out = percentiles(times);
  out["sequences"] = most;
  return out;
}

// Capacity is what the engine does when everything is there at once; `load` times that is asked of
// it.
void scale_arrivals(const SimulateOptions& o, const SimulationConfig& config,
                    std::vector<TraceRequest>& trace) {
  std::vector<TraceRequest> at_once = trace;
  for (TraceRequest& r : at_once) r.arrival_ms = 0;
  const double busy_ms = simulate(config, at_once).makespan_ms;
  const double span_ms = trace.back().arrival_ms - trace.front().arrival_ms;
  if (span_ms <= 0)
    throw_user_error("--load needs a trace whose requests arrive at different times");
  const double first = trace.front().arrival_ms;
  for (TraceRequest& r : trace) r.arrival_ms = (r.arrival_ms - first) / span_ms * busy_ms / o.load;
}

}  // namespace

int run_simulate(const SimulateOptions& o) {
  check_options(o);
  std::vector<TraceRequest> trace =
      o.trace.empty() ? make_trace(o.requests, o.seed) : read_trace(o.trace, o.limit);
  if (o.trace.empty() && o.limit > 0 && o.limit < o.requests)
    trace.resize(static_cast<size_t>(o.limit));
  if (trace.empty()) throw_user_error("the trace holds no requests");
  const SimulationConfig config = make_config(o, trace);
  if (o.load > 0 && !o.serial) scale_arrivals(o, config, trace);
  const SimulationResult r = simulate(config, trace);
  if (o.json) {
    const bj::object out{{"requests", r.num_requests},
                         {"finished", r.num_finished},
                         {"steps", r.num_steps},
                         {"invariant_failures", r.num_invariant_failures},
                         {"prefix_hit_tokens", r.num_prefix_hit_tokens},
                         {"prompt_tokens", r.num_prompt_tokens},
                         {"preemptions", r.num_preemptions},
                         {"ttft_ms", percentiles(r.ttft_ms)},
                         {"itl_ms", percentiles(r.itl_ms)},
                         {"max_wait_ratio", r.max_wait_ratio},
                         {"step_fill", r.step_fill},
                         {"plan_us", percentiles(r.plan_us)},
                         {"plan_us_busiest", busiest_planning(r)},
                         {"makespan_ms", r.makespan_ms}};
    fmt::print("{}\n", bj::serialize(out));
  } else {
    fmt::print("{} of {} requests finished in {} steps, {:.1f} s simulated; {} preemptions\n",
               r.num_finished, r.num_requests, r.num_steps, r.makespan_ms / 1e3, r.num_preemptions);
    fmt::print(
        "prefix cache      {:.4f} of {} prompt tokens\n",
        static_cast<double>(r.num_prefix_hit_tokens) / static_cast<double>(r.num_prompt_tokens),
        r.num_prompt_tokens);
    fmt::print("first token       p50 {:.1f} ms, p99 {:.1f} ms\n", percentile(r.ttft_ms, 0.5),
               percentile(r.ttft_ms, 0.99));
    fmt::print("between tokens    p50 {:.1f} ms, p99 {:.1f} ms\n", percentile(r.itl_ms, 0.5),
               percentile(r.itl_ms, 0.99));
    fmt::print("longest wait      {:.2f} x the median of its second\n", r.max_wait_ratio);
    fmt::print("step fill         {:.4f}\n", r.step_fill);
    fmt::print("planning a step   p50 {:.1f} us, p99 {:.1f} us\n", percentile(r.plan_us, 0.5),
               percentile(r.plan_us, 0.99));
  }
  if (r.num_invariant_failures > 0)
    throw CheckError(
        fmt::format("{} steps broke an invariant: {}", r.num_invariant_failures, r.first_failure));
  return 0;
}

}  // namespace briar
