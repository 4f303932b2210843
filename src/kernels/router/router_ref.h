// The k largest logits of a row, ties to the lower id, and the softmax over just those.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace briar {

struct Routing {
  std::vector<int32_t> ids;
  std::vector<double> weights;
};

inline Routing router_ref(std::span<const float> logits, size_t k) {
  Routing r;
  r.ids.resize(logits.size());
  std::iota(r.ids.begin(), r.ids.end(), 0);
  std::stable_sort(r.ids.begin(), r.ids.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  r.ids.resize(k);
  double sum = 0;
  for (const int32_t id : r.ids) {
    r.weights.push_back(std::exp(double{logits[static_cast<size_t>(id)]} -
                                 double{logits[static_cast<size_t>(r.ids[0])]}));
    sum += r.weights.back();
  }
  for (double& weight : r.weights) weight /= sum;
  return r;
}

}  // namespace briar
