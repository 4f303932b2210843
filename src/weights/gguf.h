// The GGUF file format, versions 2 and 3 (ggml's docs/gguf.md): magic, version and two counts, then
// metadata (key, type, value), the tensor table (name, sizes, type, offset), and the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "weights/tensor_entry.h"

namespace briar {

// Value types, numbered as in the file.
enum class GgufType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

// "uint32"
const char* to_string(GgufType type);

// More of either is refused: the largest published models have some 50,000 tensors and 100 keys.
inline constexpr uint64_t kMaxGgufTensors = 1 << 16;
inline constexpr uint64_t kMaxGgufKeys = 1 << 14;
// Arrays of arrays nest no deeper.
inline constexpr int kMaxGgufDepth = 4;

// The typed key-value pairs. Everything was checked when the file was read; lookups decode straight
// from the file's bytes, which must outlive the views they return. The accessors throw UserError if
// the key is there with a value of another kind.
class GgufMetadata {
 public:
  bool has(std::string_view key) const { return values_.contains(key); }
  // In the file's order.
  const std::vector<std::string_view>& keys() const { return keys_; }

  std::optional<std::string_view> find_string(std::string_view key) const;
  // Any integer type; a uint64 beyond int64 is an error.
  std::optional<int64_t> find_integer(std::string_view key) const;
  // Any integer or floating type.
  std::optional<double> find_real(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;

  // Arrays. Absent where the key is; the element type must fit, but an empty array may have any.
  std::optional<std::vector<std::string_view>> find_strings(std::string_view key) const;
  std::optional<std::vector<int64_t>> find_integers(std::string_view key) const;
  std::optional<std::vector<float>> find_reals(std::string_view key) const;

  const std::string& file() const { return file_; }

 private:
  friend class GgufParser;
  struct Value {
    GgufType type;
    const uint8_t* data;            // first byte of the value; of an array: of its first element
    GgufType element = GgufType{};  // arrays only, as is count
    uint64_t count = 0;
  };
  const Value* find(std::string_view key) const;
  const Value* find_array(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, const Value& value, const char* wanted) const;
  int64_t to_integer(std::string_view key, const Value& value, const uint8_t* at,
                     GgufType type) const;

  std::string file_;
  std::vector<std::string_view> keys_;
  std::unordered_map<std::string_view, Value> values_;
};

// What a file says; points into its bytes. Tensors have the file's own names, and their shapes are
// row-major (the file lists the fastest dimension first).
struct GgufContents {
  GgufMetadata metadata;
  std::vector<TensorEntry> tensors;
};

// Nothing of the file is trusted: every count, length, type, nesting and offset is checked against
// the bytes that are there, before anything is allocated for it; names differ; tensors are aligned
// and neither overlap nor leave holes. `file` names the file in errors.
Result<GgufContents> parse_gguf(std::span<const uint8_t> bytes, const std::string& file);

// A mapped file and its contents.
class GgufFile {
 public:
  static Result<GgufFile> open(const std::string& path);

  const GgufMetadata& metadata() const { return contents_.metadata; }
  const GgufContents& contents() const { return contents_; }

 private:
  GgufFile(MappedFile file, GgufContents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {}

  MappedFile file_;
  GgufContents contents_;
};

}  // namespace briar
