#include "engine_harness.h"

#include <boost/json.hpp>
#include <cstring>
#include <fstream>

namespace briar {
namespace {

namespace bj = boost::json;

template <class T>
std::vector<T> numbers(const bj::value& list) {
  std::vector<T> out;
  for (const bj::value& v : list.as_array()) out.push_back(static_cast<T>(v.to_number<double>()));
  return out;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

}  // namespace

std::vector<GoldenCase> read_golden(const std::string& name) {
  std::ifstream file(golden_path(name));
  EXPECT_TRUE(file) << golden_path(name);
  std::vector<GoldenCase> cases;
  for (std::string line; std::getline(file, line);) {
    const bj::value v = bj::parse(line);
    GoldenCase c;
    c.name = v.at("name").as_string();
    c.prompt = numbers<int32_t>(v.at("prompt"));
    c.prompt_logprobs = numbers<float>(v.at("prompt_logprobs"));
    c.greedy = numbers<int32_t>(v.at("greedy"));
    c.greedy_logprobs = numbers<float>(v.at("greedy_logprobs"));
    c.margins = numbers<float>(v.at("margins"));
    c.generate = v.at("generate").to_number<int64_t>();
    for (const bj::value& pair : v.at("next_top").as_array()) {
      c.next_top.push_back({pair.at(0).to_number<int32_t>(), pair.at(1).to_number<float>()});
    }
    cases.push_back(std::move(c));
  }
  return cases;
}

void expect_same_bits(const Collected& a, const Collected& b, const std::string& what) {
  EXPECT_EQ(a.tokens, b.tokens) << what;
  EXPECT_TRUE(same_bits(a.logprobs, b.logprobs)) << what;
  EXPECT_TRUE(same_bits(a.prompt_logprobs, b.prompt_logprobs)) << what;
  EXPECT_EQ(a.finish_reason, b.finish_reason) << what;
  ASSERT_EQ(a.top.size(), b.top.size()) << what;
  for (size_t i = 0; i < a.top.size(); ++i) {
    ASSERT_EQ(a.top[i].size(), b.top[i].size()) << what;
    for (size_t j = 0; j < a.top[i].size(); ++j) {
      EXPECT_EQ(a.top[i][j].token_id, b.top[i][j].token_id) << what;
      EXPECT_EQ(a.top[i][j].logprob, b.top[i][j].logprob) << what;
    }
  }
}

Request scoring_request(const std::vector<int32_t>& prompt, int64_t max_tokens,
                        std::vector<int32_t> stop_ids) {
  Request request;
  request.prompt = prompt;
  request.sampling.temperature = 0;
  request.max_tokens = max_tokens;
  request.stop_token_ids = std::move(stop_ids);
  request.num_top_logprobs = 8;
  request.wants_prompt_logprobs = true;
  return request;
}

std::vector<Collected> run_all(Engine& engine, std::vector<Request> requests) {
  std::vector<Collected> results(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    Collected& to = results[i];
    requests[i].on_output = [&to](const Output& o) {
      for (const OutputToken& t : o.tokens) {
        to.tokens.push_back(t.token_id);
        to.logprobs.push_back(t.logprob);
        to.top.push_back(t.top);
      }
      to.prompt_logprobs.insert(to.prompt_logprobs.end(), o.prompt_logprobs.begin(),
                                o.prompt_logprobs.end());
      if (o.finish_reason == FinishReason::kNone) return true;
      to.finish_reason = o.finish_reason;
      to.error = o.error;
      ++to.num_last_calls;
      return true;
    };
    auto id = engine.submit(std::move(requests[i]));
    EXPECT_TRUE(id.ok()) << (id.ok() ? "" : id.error().message);
  }
  engine.drain();
  for (const Collected& c : results) EXPECT_EQ(c.num_last_calls, 1);
  return results;
}

EngineOptions test_options(const std::string& model, const std::string& precision) {
  EngineOptions options;
  options.model = model_path(model);
  options.precision = precision;
  options.checks_invariants = true;
  options.kv_cache_bytes = int64_t{256} << 20;
  return options;
}

}  // namespace briar
