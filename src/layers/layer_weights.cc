#include "layers/layer_weights.h"

#include <vector>

namespace briar {

DType LayerWeights::dense_dtype(const std::string& name) const {
  if (!precision_.keeps_stored_weights) return DType::kBf16;
  return loader_.stored_dtype(name).value_or(DType::kFp32) == DType::kBf16 ? DType::kBf16
                                                                           : DType::kFp32;
}

TensorView LayerWeights::dense(const std::string& name, std::initializer_list<int64_t> shape) {
  return loader_.dense(name, shape, dense_dtype(name));
}

RmsNorm LayerWeights::norm(const std::string& name, int64_t size, float eps) {
  return {dense(name, {size}), eps};
}

Embedding LayerWeights::embedding(const std::string& prefix, int64_t vocab_size,
                                  int64_t hidden_size) {
  return {dense(prefix + ".weight", {vocab_size, hidden_size})};
}

Linear LayerWeights::linear(const std::string& prefix, int64_t rows, int64_t columns,
                            bool has_bias) {
  return stacked({{prefix, rows}}, columns, has_bias);
}

Linear LayerWeights::stacked(std::initializer_list<Part> parts, int64_t columns, bool has_bias) {
  const auto stack = [&](const char* suffix, int64_t width) {
    std::vector<WeightLoader::RowBlock> blocks;
    for (const Part& part : parts) blocks.push_back({part.prefix + suffix, part.rows});
    return loader_.stacked(blocks, width, dense_dtype(blocks.front().name));
  };
  Linear out{.weight = stack(".weight", columns), .bias = {}};
  if (has_bias) out.bias = stack(".bias", -1);
  return out;
}

}  // namespace briar
