#include "weights/weight_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/thread_pool.h"
#include "weights/convert.h"
#include "weights/gguf_blocks.h"
#include "weights/mxfp4.h"
#include "weights/printable.h"

namespace briar {
namespace {

// Small enough that all threads share a tensor of a megabyte, large enough that handing out a range
// costs nothing beside it.
constexpr int64_t kGrainBytes = int64_t{256} << 10;
// Unused tensors that an error names; a wrong model would list thousands.
constexpr size_t kMaxListed = 20;

// Sizes come from a configuration file: their product must not overflow before it is compared with
// what the checkpoint really holds.
void check_wanted_shape(const std::string& name, std::initializer_list<int64_t> shape) {
  int64_t count = 16;  // room for the largest element and the arena's alignment
  for (const int64_t size : shape) {
    if (size < 0 || (size > 0 && __builtin_mul_overflow(count, size, &count))) {
      throw_user_error("tensor {}: the configuration asks for the impossible shape {}", name,
                       shape_text(shape));
    }
  }
}

void check_dense_target(const std::string& name, DType dtype) {
  CHECK(dtype == DType::kFp32 || dtype == DType::kBf16,
        "{}: dense weights are fp32 or bf16, not {}", name, to_string(dtype));
}

// "[3, 17]" for the element at `offset` of a row-major tensor.
std::string index_text(int64_t offset, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = offset % shape[axis];
    offset /= shape[axis];
  }
  return shape_text(index);
}

[[noreturn]] void refuse_not_finite(const TensorEntry& entry, DType to_dtype) {
  const auto index = find_not_finite(entry.dtype, entry.bytes, to_dtype);
  CHECK(index.has_value(), "{}: no element that does not convert", entry.name);
  throw_user_error("{}: {}{} is {}, not a finite {}", entry.file, printable(entry.name),
                   index_text(*index, entry.shape), dense_element(entry.dtype, entry.bytes, *index),
                   to_string(to_dtype));
}

[[noreturn]] void refuse_mxfp4(const TensorEntry& blocks, const TensorEntry& scales) {
  const auto block = find_invalid_mxfp4_block(blocks.bytes, scales.bytes);
  CHECK(block.has_value(), "{}: no invalid block", blocks.name);
  const int scale = scales.bytes[static_cast<size_t>(*block)];
  throw_user_error(
      "{}: {}{} is {}, which {}", scales.file, printable(scales.name),
      index_text(*block, scales.shape), scale,
      scale == kMxfp4NanScale ? "stands for NaN" : "overflows with its block's values");
}

// Where the file has Hugging Face's row `row`: within a head, the first half of the rows stands at
// even places and the second half at odd ones.
int64_t stored_row(const TensorEntry& entry, int64_t row) {
  const int64_t head_dim = entry.shape[0] / entry.num_interleaved_heads, half = head_dim / 2;
  const int64_t in_head = row % head_dim;
  return row - in_head + (in_head < half ? 2 * in_head : 2 * (in_head - half) + 1);
}

std::string join(const std::vector<std::string>& texts, size_t limit) {
  std::string out;
  for (size_t i = 0; i < std::min(limit, texts.size()); ++i) {
    out += (i == 0 ? "" : ", ") + texts[i];
  }
  return texts.size() > limit ? fmt::format("{} and {} more", out, texts.size() - limit) : out;
}

}  // namespace

WeightLoader WeightLoader::plan(const Checkpoint& checkpoint) { return WeightLoader(checkpoint); }

WeightLoader WeightLoader::load(const Checkpoint& checkpoint, Arena& arena, Stream& stream,
                                ProgressFn progress) {
  WeightLoader loader(checkpoint);
  loader.arena_ = &arena;
  loader.stream_ = &stream;
  loader.progress_ = std::move(progress);
  return loader;
}

std::optional<DType> WeightLoader::stored_dtype(std::string_view name) const {
  const TensorEntry* entry = checkpoint_->find(name);
  if (entry == nullptr) return std::nullopt;
  switch (entry->dtype) {
    case WireDType::kF32: return DType::kFp32;
    case WireDType::kBf16: return DType::kBf16;
    case WireDType::kF8E4M3: return DType::kFp8E4m3;
    case WireDType::kI32: return DType::kInt32;
    case WireDType::kU8: return DType::kUint8;
    default: return std::nullopt;
  }
}

// The plan pass collects; the load pass, which runs after a plan without fault, stops at once.
void WeightLoader::problem(std::vector<std::string>& list, std::string text) {
  if (!is_plan()) throw_user_error("{}: {}", checkpoint_->path(), text);
  list.push_back(std::move(text));
}

// nullptr where the tensor is missing or not as wanted.
const TensorEntry* WeightLoader::take(const std::string& name, std::initializer_list<int64_t> shape,
                                      Kind kind) {
  check_wanted_shape(name, shape);
  const TensorEntry* entry = checkpoint_->find(name);
  if (entry == nullptr) {
    problem(missing_, is_plan() ? name : "tensor " + name + " is missing");
    return nullptr;
  }
  const bool is_new = taken_.insert(entry).second;
  const bool has_kind =
      kind == Kind::kDense ? is_dense(entry->dtype) : entry->dtype == WireDType::kU8;
  if (!has_kind ||
      !std::equal(shape.begin(), shape.end(), entry->shape.begin(), entry->shape.end())) {
    problem(wrong_, fmt::format("{} is {} {}, expected {} {}", name, to_string(entry->dtype),
                                shape_text(entry->shape),
                                kind == Kind::kDense ? "BF16, F16, F32 or GGUF blocks" : "U8",
                                shape_text(shape)));
    return nullptr;
  }
  if (is_new) file_bytes_ += static_cast<int64_t>(entry->bytes.size());
  return entry;
}

TensorView WeightLoader::allocate(DType dtype, std::initializer_list<int64_t> shape) {
  TensorView view(nullptr, dtype, shape);
  // After a problem the count means nothing, and absurd shapes could overflow it.
  if (missing_.empty() && wrong_.empty()) {
    arena_bytes_ += Arena::footprint(dtype, view.num_elements());
  }
  return is_plan() ? view : arena_->tensor(dtype, shape);
}

void WeightLoader::report(const TensorEntry& entry) {
  done_bytes_ += static_cast<int64_t>(entry.bytes.size());
  if (progress_) progress_(std::min(done_bytes_, total_bytes_), total_bytes_);
}

TensorView WeightLoader::dense(const std::string& name, std::initializer_list<int64_t> shape,
                               DType dtype) {
  check_dense_target(name, dtype);
  const TensorEntry* entry = take(name, shape, Kind::kDense);
  note_expanded(entry, dtype);
  const TensorView view = allocate(dtype, shape);
  if (!is_plan()) load_dense(*entry, view);
  return view;
}

std::optional<BlockFormat> WeightLoader::block_format(std::string_view name) const {
  const TensorEntry* entry = checkpoint_->find(name);
  if (entry == nullptr) return std::nullopt;
  switch (entry->dtype) {
    case WireDType::kQ8_0: return BlockFormat::kQ8_0;
    case WireDType::kQ4_0: return BlockFormat::kQ4_0;
    case WireDType::kQ4_1: return BlockFormat::kQ4_1;
    case WireDType::kQ4_K: return BlockFormat::kQ4_K;
    case WireDType::kQ6_K: return BlockFormat::kQ6_K;
    default: return std::nullopt;
  }
}

TensorView WeightLoader::quantized(const std::vector<RowBlock>& blocks, int64_t columns,
                                   BlockFormat format) {
  std::vector<const TensorEntry*> entries;
  int64_t num_rows = 0;
  for (const RowBlock& block : blocks) {
    CHECK(block_format(block.name) == format, "{} is not in {}", block.name, to_string(format));
    entries.push_back(take(block.name, {block.rows, columns}, Kind::kDense));
    num_rows += block.rows;
  }
  // A wrong shape, which finish() reports, need not be whole blocks.
  const int64_t whole = columns / block_size(format) * block_size(format);
  const QuantizedShape shape{format, num_rows, whole};
  const TensorView view = allocate(DType::kUint8, {packed_bytes(shape)});
  blocks_[fmt::format("{} kept", to_string(format))] += static_cast<int>(blocks.size());
  if (is_plan()) return view;
  int64_t row = 0;
  for (const TensorEntry* entry : entries) {
    load_quantized(*entry, shape, row, view);
    row += entry->shape[0];
  }
  return view;
}

void WeightLoader::note_expanded(const TensorEntry* entry, DType dtype) {
  if (entry == nullptr || !is_block_format(entry->dtype)) return;
  ++blocks_[fmt::format("{} expanded to {}", to_string(entry->dtype), to_string(dtype))];
}

std::string WeightLoader::describe_blocks() const {
  std::string text;
  for (const auto& [what, count] : blocks_) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
  }
  return text;
}

void WeightLoader::ignore(std::string_view name) {
  if (const TensorEntry* entry = checkpoint_->find(name)) taken_.insert(entry);
}

TensorView WeightLoader::stacked(const std::vector<RowBlock>& blocks, int64_t columns,
                                 DType dtype) {
  std::vector<const TensorEntry*> entries;
  int64_t num_rows = 0;
  for (const RowBlock& block : blocks) {
    check_dense_target(block.name, dtype);
    entries.push_back(columns < 0 ? take(block.name, {block.rows}, Kind::kDense)
                                  : take(block.name, {block.rows, columns}, Kind::kDense));
    note_expanded(entries.back(), dtype);
    num_rows += block.rows;
  }
  const TensorView view =
      columns < 0 ? allocate(dtype, {num_rows}) : allocate(dtype, {num_rows, columns});
  if (is_plan()) return view;
  int64_t row = 0;
  for (const TensorEntry* entry : entries) {
    load_dense(*entry, view.rows(row, row + entry->shape[0]));
    row += entry->shape[0];
  }
  return view;
}

WeightLoader::ExpertWeights WeightLoader::mxfp4_experts(const std::string& blocks,
                                                        const std::string& scales,
                                                        int64_t num_experts, int64_t rows,
                                                        int64_t columns, DType dtype) {
  if (columns % kMxfp4BlockSize != 0) {
    throw_user_error("{}: {}: MXFP4 rows hold blocks of {} values, the configuration asks for {}",
                     checkpoint_->path(), blocks, kMxfp4BlockSize, columns);
  }
  const int64_t row_blocks = columns / kMxfp4BlockSize;
  const TensorEntry* block_entry =
      take(blocks, {num_experts, rows, row_blocks, kMxfp4BlockBytes}, Kind::kU8);
  const TensorEntry* scale_entry = take(scales, {num_experts, rows, row_blocks}, Kind::kU8);
  check_wanted_shape(blocks, {num_experts, rows, columns});
  ExpertWeights out;
  out.values = allocate(dtype, {num_experts, rows, columns});
  if (dtype == DType::kMxfp4) {
    out.scales = allocate(DType::kUint8, {num_experts, rows, row_blocks});
  } else {
    check_dense_target(blocks, dtype);
  }
  if (!is_plan()) load_mxfp4(*block_entry, *scale_entry, out);
  return out;
}

WeightLoader::ExpertWeights WeightLoader::transposed_experts(const std::string& name,
                                                             int64_t num_experts, int64_t rows,
                                                             int64_t columns, DType dtype) {
  check_dense_target(name, dtype);
  const TensorEntry* entry = take(name, {num_experts, columns, rows}, Kind::kDense);
  ExpertWeights out{.values = allocate(dtype, {num_experts, rows, columns}), .scales = {}};
  if (!is_plan()) load_transposed(*entry, out.values);
  return out;
}

void WeightLoader::load_dense(const TensorEntry& entry, const TensorView& to) {
  // Runs of the file that stay together: blocks, or rows where their order changes.
  const bool is_interleaved = entry.num_interleaved_heads > 0;
  const int64_t num_units =
      is_interleaved ? entry.shape[0] : entry.num_elements() / block_elements(entry.dtype);
  const int64_t elements = num_units == 0 ? 1 : entry.num_elements() / num_units;
  const int64_t size = elements / block_elements(entry.dtype) * block_bytes(entry.dtype);
  std::atomic<bool> is_finite = true;
  const auto convert = [&](int64_t from, int64_t count, int64_t at) {
    const auto bytes =
        entry.bytes.subspan(static_cast<size_t>(from * size), static_cast<size_t>(count * size));
    auto* out = static_cast<uint8_t*>(to.data()) + dtype_bytes(to.dtype(), at * elements);
    if (!convert_dense(entry.dtype, bytes, to.dtype(), out)) is_finite = false;
  };
  const auto body = [&](int64_t begin, int64_t end) {
    if (!is_interleaved) return convert(begin, end - begin, begin);
    for (int64_t row = begin; row < end; ++row) convert(stored_row(entry, row), 1, row);
  };
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(1, size));
  cpu_thread_pool(*stream_).for_ranges(num_units, grain, body);
  if (!is_finite) refuse_not_finite(entry, to.dtype());
  report(entry);
}

void WeightLoader::load_quantized(const TensorEntry& entry, const QuantizedShape& shape,
                                  int64_t first_row, const TensorView& to) {
  const int64_t num_rows = entry.shape[0];
  const int64_t row_size = source_row_bytes(shape.format, shape.in_features);
  const bool is_interleaved = entry.num_interleaved_heads > 0;
  auto* packed = to.ptr<uint8_t>();
  std::atomic<bool> is_finite = true;
  const auto body = [&](int64_t begin, int64_t end) {
    const auto rows = entry.bytes.subspan(static_cast<size_t>(begin * row_size),
                                          static_cast<size_t>((end - begin) * row_size));
    if (!has_finite_scales(entry.dtype, rows)) is_finite = false;
    const auto source = [&](int64_t row) { return entry.bytes.data() + row * row_size; };
    if (!is_interleaved) {
      return pack(shape, source(begin), first_row + begin, first_row + end, packed);
    }
    for (int64_t row = begin; row < end; ++row) {
      pack(shape, source(stored_row(entry, row)), first_row + row, first_row + row + 1, packed);
    }
  };
  cpu_thread_pool(*stream_).for_ranges(num_rows, std::max<int64_t>(1, kGrainBytes / row_size),
                                       body);
  if (!is_finite) refuse_not_finite(entry, DType::kFp32);
  report(entry);
}

void WeightLoader::load_transposed(const TensorEntry& entry, const TensorView& to) {
  const int64_t num_experts = to.size(0), rows = to.size(1), columns = to.size(2);
  const auto expert_bytes = static_cast<size_t>(rows * columns * block_bytes(entry.dtype));
  // A range reads whole cache lines of every source row.
  constexpr int64_t kRowsPerTask = 64;
  const int64_t tasks_per_expert = (rows + kRowsPerTask - 1) / kRowsPerTask;
  std::atomic<bool> is_finite = true;
  auto task = [&](int64_t i) {
    const auto expert = static_cast<size_t>(i / tasks_per_expert);
    const int64_t begin = i % tasks_per_expert * kRowsPerTask;
    const TransposeArgs args{
        .dtype = entry.dtype,
        .bytes = entry.bytes.subspan(expert * expert_bytes, expert_bytes),
        .num_rows = rows,
        .num_columns = columns,
        .to_dtype = to.dtype(),
        .to = to.at(static_cast<int64_t>(expert)).data(),
    };
    if (!convert_transposed(args, begin, std::min(begin + kRowsPerTask, rows))) is_finite = false;
  };
  cpu_thread_pool(*stream_).run(num_experts * tasks_per_expert, task);
  if (!is_finite) refuse_not_finite(entry, to.dtype());
  report(entry);
}

void WeightLoader::load_mxfp4(const TensorEntry& blocks, const TensorEntry& scales,
                              const ExpertWeights& to) {
  std::atomic<bool> is_valid = true;
  const auto body = [&](int64_t begin, int64_t end) {
    const auto first = static_cast<size_t>(begin), count = static_cast<size_t>(end - begin);
    const auto from = blocks.bytes.subspan(first * kMxfp4BlockBytes, count * kMxfp4BlockBytes);
    const auto from_scales = scales.bytes.subspan(first, count);
    if (find_invalid_mxfp4_block(from, from_scales)) is_valid = false;
    const int64_t at = begin * kMxfp4BlockSize;
    const size_t num_values = count * kMxfp4BlockSize;
    if (to.values.dtype() == DType::kMxfp4) {
      auto* values = static_cast<uint8_t*>(to.values.data());
      std::copy(from.begin(), from.end(), values + begin * kMxfp4BlockBytes);
      std::copy(from_scales.begin(), from_scales.end(), to.scales.ptr<uint8_t>() + begin);
    } else if (to.values.dtype() == DType::kBf16) {
      decode_mxfp4(from, from_scales, {to.values.ptr<Bf16>() + at, num_values});
    } else {
      decode_mxfp4(from, from_scales, {to.values.ptr<float>() + at, num_values});
    }
  };
  cpu_thread_pool(*stream_).for_ranges(static_cast<int64_t>(scales.bytes.size()),
                                       kGrainBytes / kMxfp4BlockBytes, body);
  if (!is_valid) refuse_mxfp4(blocks, scales);
  report(blocks);
  report(scales);
}

void WeightLoader::finish() const {
  std::vector<std::string> unused;
  for (const TensorEntry& entry : checkpoint_->tensors()) {
    if (!taken_.contains(&entry)) unused.push_back(printable(entry.name));
  }
  std::string text;
  const auto add = [&](const std::vector<std::string>& list, const char* what, size_t limit) {
    if (list.empty()) return;
    text +=
        fmt::format("{}{} {}: {}", text.empty() ? "" : "; ", list.size(), what, join(list, limit));
  };
  add(missing_, "missing", missing_.size());
  add(wrong_, "of the wrong shape or type", wrong_.size());
  add(unused, "unused", kMaxListed);
  if (text.empty()) return;
  throw_user_error("{}: the tensors do not fit the configuration: {}", checkpoint_->path(), text);
}

}  // namespace briar
