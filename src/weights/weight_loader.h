// What a model's constructor asks for its weights: names, shapes and dtypes in, tensors in an arena
// out.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "device/arena.h"
#include "device/device.h"
#include "device/tensor.h"
#include "kernels/quantized_linear/layout.h"
#include "weights/checkpoint.h"

namespace briar {

// Called by the loading thread after each tensor.
using ProgressFn = std::function<void(int64_t done_bytes, int64_t total_bytes)>;

// The same model constructor runs twice. The plan pass reads no weights and allocates nothing: it
// counts the bytes of the arena and collects every missing tensor and wrong shape, which finish()
// reports together; its views have shape and dtype but no data. The load pass copies into the
// arena. All faults of the files are UserErrors; NaN, infinities and MXFP4 scales of 255 are
// refused with file, tensor and index.
//
//   WeightLoader plan = WeightLoader::plan(*checkpoint);
//   Model(config, plan);
//   plan.finish();
//   Arena arena(device, plan.arena_bytes(), "weights");
//   WeightLoader load = WeightLoader::load(*checkpoint, arena, stream, progress);
//   Model model(config, load);
//   load.finish();
class WeightLoader {
 public:
  static WeightLoader plan(const Checkpoint& checkpoint);
  static WeightLoader load(const Checkpoint& checkpoint, Arena& arena, Stream& stream,
                           ProgressFn progress = {});

  bool is_plan() const { return arena_ == nullptr; }
  bool has(std::string_view name) const { return checkpoint_->find(name) != nullptr; }
  // The dtype in the file, where a tensor of ours can have it (F16 for one cannot).
  std::optional<DType> stored_dtype(std::string_view name) const;

  // A BF16, F16, F32 or GGUF block tensor of exactly this shape, converted to `dtype` (kFp32 or
  // kBf16), its rows in Hugging Face's order.
  TensorView dense(const std::string& name, std::initializer_list<int64_t> shape, DType dtype);

  struct RowBlock {
    std::string name;
    int64_t rows;
  };
  // Several tensors stacked into one [sum of rows, columns], or [sum of rows] where columns < 0.
  TensorView stacked(const std::vector<RowBlock>& blocks, int64_t columns, DType dtype);

  // The format of a block-quantised tensor that the kernels can read as it is.
  std::optional<BlockFormat> block_format(std::string_view name) const;
  // Several such tensors, all in this format, stacked and packed for kernels/quantized_linear:
  // [packed_bytes] uint8.
  TensorView quantized(const std::vector<RowBlock>& blocks, int64_t columns, BlockFormat format);

  struct ExpertWeights {
    TensorView values;  // [num_experts, rows, columns]
    TensorView scales;  // [num_experts, rows, columns / 32] uint8; absent unless values are kMxfp4
  };
  // MXFP4 experts: U8 `blocks` [num_experts, rows, columns / 32, 16] and U8 `scales` [num_experts,
  // rows, columns / 32], kept as they are (kMxfp4) or expanded (kBf16, kFp32), both without loss.
  ExpertWeights mxfp4_experts(const std::string& blocks, const std::string& scales,
                              int64_t num_experts, int64_t rows, int64_t columns, DType dtype);
  // Dense experts in Hugging Face's layout [num_experts, columns, rows], transposed to
  // [num_experts, rows, columns] in kBf16 or kFp32.
  ExpertWeights transposed_experts(const std::string& name, int64_t num_experts, int64_t rows,
                                   int64_t columns, DType dtype);

  // A tensor that some published files have and nobody needs: finish() does not call it unused.
  void ignore(std::string_view name);

  // What the arena must hold for everything asked so far.
  int64_t arena_bytes() const { return arena_bytes_; }
  // What has become of block-quantised tensors so far: "210 Q4_1 kept, 1 Q8_0 expanded to bf16".
  // Empty where there are none.
  std::string describe_blocks() const;
  // Bytes of the files behind it.
  int64_t file_bytes() const { return file_bytes_; }

  // Every tensor asked for must have been found, with the right shape, and every tensor of the
  // checkpoint must have been asked for. Otherwise throws one UserError that lists them.
  void finish() const;

 private:
  explicit WeightLoader(const Checkpoint& checkpoint)
      : checkpoint_(&checkpoint), total_bytes_(checkpoint.num_bytes()) {}

  enum class Kind { kDense, kU8 };
  const TensorEntry* take(const std::string& name, std::initializer_list<int64_t> shape, Kind kind);
  void problem(std::vector<std::string>& list, std::string text);
  TensorView allocate(DType dtype, std::initializer_list<int64_t> shape);
  void note_expanded(const TensorEntry* entry, DType dtype);
  void load_dense(const TensorEntry& entry, const TensorView& to);
  void load_quantized(const TensorEntry& entry, const QuantizedShape& shape, int64_t first_row,
                      const TensorView& to);
  void load_transposed(const TensorEntry& entry, const TensorView& to);
  void load_mxfp4(const TensorEntry& blocks, const TensorEntry& scales, const ExpertWeights& to);
  void report(const TensorEntry& entry);

  const Checkpoint* checkpoint_;
  int64_t total_bytes_;
  Arena* arena_ = nullptr;  // nullptr: the plan pass
  Stream* stream_ = nullptr;
  ProgressFn progress_;
  int64_t arena_bytes_ = 0;
  int64_t file_bytes_ = 0;
  int64_t done_bytes_ = 0;
  std::unordered_set<const TensorEntry*> taken_;
  std::map<std::string, int> blocks_;  // "Q4_1 kept" -> tensors
  std::vector<std::string> missing_;
  std::vector<std::string> wrong_;
};

}  // namespace briar
