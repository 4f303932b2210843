// log softmax: logit - max - log(sum of exp(logit - max))
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace briar {

inline std::vector<double> logprobs_ref(std::span<const float> logits) {
  double largest = -INFINITY, sum = 0;
  for (const float logit : logits) largest = std::max(largest, double{logit});
  for (const float logit : logits) sum += std::exp(logit - largest);
  std::vector<double> out;
  for (const float logit : logits) out.push_back(logit - largest - std::log(sum));
  return out;
}

}  // namespace briar
