// Builds layers out of a checkpoint's tensors. Which dtype a weight gets, and whether it stays
// quantised, is decided here: a model file names tensors and shapes and nothing else.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/precision.h"
#include "weights/weight_loader.h"

namespace briar {

class LayerWeights {
 public:
  LayerWeights(const Precision& precision, WeightLoader& loader)
      : precision_(precision), loader_(loader) {}

  WeightLoader& loader() { return loader_; }
  // bf16, or what the file has where the precision keeps that (fp32 if it has neither).
  DType dense_dtype(const std::string& name) const;
  TensorView dense(const std::string& name, std::initializer_list<int64_t> shape);
  RmsNorm norm(const std::string& name, int64_t size, float eps);
  Embedding embedding(const std::string& prefix, int64_t vocab_size, int64_t hidden_size);

  // `prefix`.weight [rows, columns] and, if it has one, `prefix`.bias [rows].
  Linear linear(const std::string& prefix, int64_t rows, int64_t columns, bool has_bias = false);
  struct Part {
    std::string prefix;
    int64_t rows;
  };
  // Projections of one input as one: their rows stacked in this order.
  Linear stacked(std::initializer_list<Part> parts, int64_t columns, bool has_bias = false);

 private:
  std::optional<BlockFormat> kept_format(const std::string& name) const;
  std::vector<WeightRows> weight(const std::vector<WeightLoader::RowBlock>& blocks,
                                 int64_t columns);

  const Precision& precision_;
  WeightLoader& loader_;
};

}  // namespace briar
