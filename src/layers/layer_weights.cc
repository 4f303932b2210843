#include "layers/layer_weights.h"

namespace briar {

DType LayerWeights::dense_dtype(const std::string& name) const {
  if (!precision_.keeps_stored_weights) return DType::kBf16;
  const auto stored = loader_.stored_dtype(name);
  if (stored == DType::kFp32 || stored == DType::kBf16) return *stored;
  return precision_.activations;
}

std::optional<BlockFormat> LayerWeights::kept_format(const std::string& name) const {
  return precision_.keeps_quantized_weights ? loader_.block_format(name) : std::nullopt;
}

TensorView LayerWeights::dense(const std::string& name, std::initializer_list<int64_t> shape) {
  return loader_.dense(name, shape, dense_dtype(name));
}

RmsNorm LayerWeights::norm(const std::string& name, int64_t size, float eps) {
  return {dense(name, {size}), eps};
}

// Neighbours in one format become one product.
std::vector<WeightRows> LayerWeights::weight(const std::vector<WeightLoader::RowBlock>& blocks,
                                             int64_t columns) {
  std::vector<WeightRows> out;
  for (size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    const auto format = kept_format(blocks[begin].name);
    std::vector<WeightLoader::RowBlock> run;
    WeightRows rows{.data = {}, .num_rows = 0, .format = format};
    for (; end < blocks.size() && kept_format(blocks[end].name) == format; ++end) {
      run.push_back(blocks[end]);
      rows.num_rows += blocks[end].rows;
    }
    rows.data = format ? loader_.quantized(run, columns, *format)
                       : loader_.stacked(run, columns, dense_dtype(run.front().name));
    out.push_back(rows);
  }
  return out;
}

Embedding LayerWeights::embedding(const std::string& prefix, int64_t vocab_size,
                                  int64_t hidden_size) {
  return {.table = weight({{prefix + ".weight", vocab_size}}, hidden_size).front(),
          .hidden_size = hidden_size};
}

Linear LayerWeights::linear(const std::string& prefix, int64_t rows, int64_t columns,
                            bool has_bias) {
  return stacked({{prefix, rows}}, columns, has_bias);
}

Linear LayerWeights::stacked(std::initializer_list<Part> parts, int64_t columns, bool has_bias) {
  std::vector<WeightLoader::RowBlock> weights, biases;
  for (const Part& part : parts) {
    weights.push_back({part.prefix + ".weight", part.rows});
    biases.push_back({part.prefix + ".bias", part.rows});
  }
  Linear out{.weight = weight(weights, columns), .bias = {}};
  if (has_bias) out.bias = loader_.stacked(biases, -1, dense_dtype(biases.front().name));
  return out;
}

}  // namespace briar
