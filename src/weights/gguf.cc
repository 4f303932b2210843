#include "weights/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "weights/printable.h"

namespace briar {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as it lies in memory");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kDefaultAlignment = 32;
constexpr uint32_t kMaxAlignment = 1 << 20;
// Shortest possible entries: an empty key's length, a type and a byte; an empty name's length, no
// sizes, a type and an offset.
constexpr uint64_t kMinKeyBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;
constexpr uint64_t kMaxNameBytes = 65535;
constexpr uint32_t kMaxRank = 4;

struct ValueType {
  const char* name;
  uint64_t bytes;  // 0: of no fixed size
};
// Indexed by GgufType.
constexpr std::array<ValueType, 13> kValueTypes = {{{"uint8", 1},
                                                    {"int8", 1},
                                                    {"uint16", 2},
                                                    {"int16", 2},
                                                    {"uint32", 4},
                                                    {"int32", 4},
                                                    {"float32", 4},
                                                    {"bool", 1},
                                                    {"string", 0},
                                                    {"array", 0},
                                                    {"uint64", 8},
                                                    {"int64", 8},
                                                    {"float64", 8}}};

uint64_t fixed_bytes(GgufType type) { return kValueTypes[static_cast<size_t>(type)].bytes; }

// ggml's numbers of tensor types.
struct TensorType {
  uint32_t id;
  WireDType dtype;
};
constexpr TensorType kTensorTypes[] = {
    {0, WireDType::kF32},   {1, WireDType::kF16},   {2, WireDType::kQ4_0},
    {3, WireDType::kQ4_1},  {8, WireDType::kQ8_0},  {12, WireDType::kQ4_K},
    {14, WireDType::kQ6_K}, {30, WireDType::kBf16}, {39, WireDType::kMxfp4Block}};
// Those a user may meet, so that an error can call them by name.
constexpr std::pair<uint32_t, const char*> kOtherTensorTypes[] = {
    {6, "Q5_0"},   {7, "Q5_1"},     {9, "Q8_1"},    {10, "Q2_K"},    {11, "Q3_K"},  {13, "Q5_K"},
    {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {20, "IQ4_NL"},
    {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},   {26, "I32"},
    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},  {34, "TQ1_0"},   {35, "TQ2_0"}};

std::string tensor_type_text(uint32_t id) {
  for (const auto& [other, name] : kOtherTensorTypes) {
    if (other == id) return name;
  }
  return fmt::format("number {}", id);
}

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

std::string_view load_string(const uint8_t* at) {
  return {reinterpret_cast<const char*>(at) + sizeof(uint64_t), load<uint64_t>(at)};
}

double load_real(const uint8_t* at, GgufType type) {
  return type == GgufType::kFloat32 ? double{load<float>(at)} : load<double>(at);
}

bool is_real(GgufType type) { return type == GgufType::kFloat32 || type == GgufType::kFloat64; }
bool is_integer(GgufType type) {
  return !is_real(type) && type != GgufType::kBool && fixed_bytes(type) > 0;
}

}  // namespace

const char* to_string(GgufType type) { return kValueTypes[static_cast<size_t>(type)].name; }

// ---- lookups ---------------------------------------------------------------------------------

const GgufMetadata::Value* GgufMetadata::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void GgufMetadata::fail(std::string_view key, const Value& value, const char* wanted) const {
  const bool is_array = value.type == GgufType::kArray;
  throw_user_error("{}: {} is {}{}, expected {}", file_, printable(key),
                   is_array ? "an array of " : "of type ",
                   to_string(is_array ? value.element : value.type), wanted);
}

int64_t GgufMetadata::to_integer(std::string_view key, const Value& value, const uint8_t* at,
                                 GgufType type) const {
  switch (type) {
    case GgufType::kUint8: return load<uint8_t>(at);
    case GgufType::kInt8: return load<int8_t>(at);
    case GgufType::kUint16: return load<uint16_t>(at);
    case GgufType::kInt16: return load<int16_t>(at);
    case GgufType::kUint32: return load<uint32_t>(at);
    case GgufType::kInt32: return load<int32_t>(at);
    case GgufType::kInt64: return load<int64_t>(at);
    case GgufType::kUint64:
      if (load<uint64_t>(at) >> 63 == 0) return load<int64_t>(at);
      throw_user_error("{}: {} is {}, beyond 2^63", file_, printable(key), load<uint64_t>(at));
    default: fail(key, value, "an integer");
  }
}

std::optional<std::string_view> GgufMetadata::find_string(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kString) fail(key, *value, "a string");
  return load_string(value->data);
}

std::optional<int64_t> GgufMetadata::find_integer(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  return to_integer(key, *value, value->data, value->type);
}

std::optional<double> GgufMetadata::find_real(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (is_real(value->type)) return load_real(value->data, value->type);
  if (!is_integer(value->type)) fail(key, *value, "a number");
  return static_cast<double>(to_integer(key, *value, value->data, value->type));
}

std::optional<bool> GgufMetadata::find_bool(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::kBool) fail(key, *value, "a bool");
  return load<uint8_t>(value->data) != 0;
}

const GgufMetadata::Value* GgufMetadata::find_array(std::string_view key) const {
  const Value* value = find(key);
  if (value != nullptr && value->type != GgufType::kArray) fail(key, *value, "an array");
  return value;
}

std::optional<std::vector<std::string_view>> GgufMetadata::find_strings(
    std::string_view key) const {
  const Value* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  if (value->count > 0 && value->element != GgufType::kString) fail(key, *value, "strings");
  std::vector<std::string_view> out;
  out.reserve(value->count);
  const uint8_t* at = value->data;
  for (uint64_t i = 0; i < value->count; ++i) {
    out.push_back(load_string(at));
    at += sizeof(uint64_t) + out.back().size();
  }
  return out;
}

std::optional<std::vector<int64_t>> GgufMetadata::find_integers(std::string_view key) const {
  const Value* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  if (value->count > 0 && !is_integer(value->element)) fail(key, *value, "integers");
  std::vector<int64_t> out;
  out.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    out.push_back(
        to_integer(key, *value, value->data + i * fixed_bytes(value->element), value->element));
  }
  return out;
}

std::optional<std::vector<float>> GgufMetadata::find_reals(std::string_view key) const {
  const Value* value = find_array(key);
  if (value == nullptr) return std::nullopt;
  if (value->count > 0 && !is_real(value->element)) fail(key, *value, "real numbers");
  std::vector<float> out;
  out.reserve(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const uint8_t* at = value->data + i * fixed_bytes(value->element);
    out.push_back(static_cast<float>(load_real(at, value->element)));
  }
  return out;
}

// ---- parsing ---------------------------------------------------------------------------------

// Reads the bytes front to back. A function that returns false has set message_.
class GgufParser {
 public:
  GgufParser(std::span<const uint8_t> bytes, const std::string& file) : bytes_(bytes), file_(file) {
    out_.metadata.file_ = file;
  }

  Result<GgufContents> run() {
    if (read_header() && read_metadata() && read_alignment() && read_tensors() && place_tensors()) {
      return std::move(out_);
    }
    return Error{.message = fmt::format("{}: {}", file_, message_)};
  }

 private:
  using Value = GgufMetadata::Value;

  template <class... Args>
  bool fail(fmt::format_string<Args...> text, Args&&... args) {
    message_ = fmt::format(text, std::forward<Args>(args)...);
    return false;
  }

  uint64_t remaining() const { return bytes_.size() - at_; }

  bool truncated(std::string_view what) {
    return fail("ends at byte {} within {} (is it truncated?)", bytes_.size(), what);
  }

  template <class T>
  bool read(T& value, std::string_view what) {
    if (remaining() < sizeof(T)) return truncated(what);
    value = load<T>(bytes_.data() + at_);
    at_ += sizeof(T);
    return true;
  }

  // `what` names the owner of the string.
  bool read_string(std::string_view& text, uint64_t max_bytes, std::string_view what) {
    uint64_t size = 0;
    const uint64_t begin = at_;
    if (!read(size, what)) return false;
    if (size > max_bytes) {
      return fail("{}, at byte {}, is a string of {} bytes, more than {}", what, begin, size,
                  max_bytes);
    }
    if (size > remaining()) {
      return fail("{}, at byte {}, is a string of {} bytes, but the file has only {} more", what,
                  begin, size, remaining());
    }
    text = {reinterpret_cast<const char*>(bytes_.data()) + at_, size};
    at_ += size;
    return true;
  }

  bool read_header() {
    uint32_t magic = 0, version = 0;
    if (!read(magic, "the header")) return false;
    if (magic != kMagic) return fail("does not begin with \"GGUF\" (not a GGUF file?)");
    if (!read(version, "the header")) return false;
    if (version != 2 && version != 3) {
      const bool is_swapped = version != 0 && (version & 0xffff) == 0;
      return fail("GGUF version {}{}; versions 2 and 3 are supported", version,
                  is_swapped ? ", a big-endian file" : "");
    }
    if (!read(num_tensors_, "the header") || !read(num_keys_, "the header")) return false;
    return check_count(num_keys_, "metadata keys", kMaxGgufKeys, kMinKeyBytes) &&
           check_count(num_tensors_, "tensors", kMaxGgufTensors, kMinTensorBytes);
  }

  bool check_count(uint64_t count, const char* what, uint64_t limit, uint64_t min_bytes) {
    if (count > limit) return fail("claims {} {}, more than {}", count, what, limit);
    if (count <= remaining() / min_bytes) return true;
    return fail("claims {} {}, too many for its {} bytes (is it truncated?)", count, what,
                bytes_.size());
  }

  bool read_type(GgufType& type, std::string_view key) {
    uint32_t number = 0;
    if (!read(number, "the metadata")) return false;
    if (number >= kValueTypes.size()) {
      return fail("{} has the unknown value type {}", printable(key), number);
    }
    type = static_cast<GgufType>(number);
    return true;
  }

  bool read_metadata() {
    for (uint64_t i = 0; i < num_keys_; ++i) {
      std::string_view key;
      Value value{};
      if (!read_string(key, kMaxNameBytes, "a metadata key")) return false;
      if (key.empty()) return fail("metadata key {} is empty", i);
      if (!read_type(value.type, key) || !read_value(key, value)) return false;
      if (!out_.metadata.values_.emplace(key, value).second) {
        return fail("the key {} is given twice", printable(key));
      }
      out_.metadata.keys_.push_back(key);
    }
    return true;
  }

  bool read_value(std::string_view key, Value& value) {
    if (value.type == GgufType::kArray) {
      if (!begin_array(key, value.element, value.count)) return false;
      value.data = bytes_.data() + at_;
      return skip_elements(key, value.element, value.count, 1);
    }
    value.data = bytes_.data() + at_;
    return skip_elements(key, value.type, 1, 0);
  }

  bool begin_array(std::string_view key, GgufType& element, uint64_t& count) {
    return read_type(element, key) && read(count, "the metadata");
  }

  // Checks `count` values of one type and moves behind them. `depth` counts the arrays around them.
  bool skip_elements(std::string_view key, GgufType type, uint64_t count, int depth) {
    const uint64_t size = fixed_bytes(type);
    // A string is at least its length field, an array its type and count.
    const uint64_t min_bytes = size > 0 ? size : type == GgufType::kString ? 8 : 12;
    if (count > remaining() / min_bytes) {
      return fail("{} holds {} values of type {}, but the file has only {} more bytes",
                  printable(key), count, to_string(type), remaining());
    }
    if (size > 0) {
      if (type == GgufType::kBool && !check_bools(key, count)) return false;
      at_ += size * count;
      return true;
    }
    for (uint64_t i = 0; i < count; ++i) {
      if (!(type == GgufType::kString ? skip_string(key) : skip_array(key, depth))) return false;
    }
    return true;
  }

  bool check_bools(std::string_view key, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      if (bytes_[at_ + i] > 1) return fail("{} is a bool of {}", printable(key), bytes_[at_ + i]);
    }
    return true;
  }

  // The message is made only on failure: vocabularies have 200,000 strings.
  bool skip_string(std::string_view key) {
    uint64_t size = 0;
    if (!read(size, "the metadata")) return false;
    if (size > remaining()) {
      return fail("{}, at byte {}, holds a string of {} bytes, but the file has only {} more",
                  printable(key), at_ - sizeof(size), size, remaining());
    }
    at_ += size;
    return true;
  }

  bool skip_array(std::string_view key, int depth) {
    if (depth == kMaxGgufDepth) {
      return fail("{} nests arrays more than {} deep", printable(key), kMaxGgufDepth);
    }
    GgufType element{};
    uint64_t count = 0;
    return begin_array(key, element, count) && skip_elements(key, element, count, depth + 1);
  }

  bool read_alignment() {
    constexpr std::string_view kKey = "general.alignment";
    const Value* value = out_.metadata.find(kKey);
    if (value == nullptr) return true;
    if (value->type != GgufType::kUint32) {
      return fail("{} is of type {}, not uint32", kKey, to_string(value->type));
    }
    alignment_ = load<uint32_t>(value->data);
    if (std::has_single_bit(alignment_) && alignment_ >= 8 && alignment_ <= kMaxAlignment) {
      return true;
    }
    return fail("{} is {}, expected a power of two from 8 to {}", kKey, alignment_, kMaxAlignment);
  }

  bool read_tensors() {
    std::unordered_set<std::string_view> names;
    for (uint64_t i = 0; i < num_tensors_; ++i) {
      std::string_view name;
      if (!read_string(name, kMaxNameBytes, "a tensor's name")) return false;
      if (name.empty()) return fail("tensor {} has no name", i);
      if (!names.insert(name).second) return fail("tensor {} is listed twice", printable(name));
      TensorEntry entry;
      entry.name = name;
      entry.file = file_;
      uint64_t offset = 0;
      if (!read_shape(entry) || !read_dtype(entry) || !read(offset, "the tensor table")) {
        return false;
      }
      out_.tensors.push_back(std::move(entry));
      offsets_.push_back(offset);
    }
    return true;
  }

  bool read_shape(TensorEntry& entry) {
    uint32_t rank = 0;
    if (!read(rank, "the tensor table")) return false;
    if (rank == 0 || rank > kMaxRank) {
      return fail("tensor {} has {} dimensions, expected 1 to {}", printable(entry.name), rank,
                  kMaxRank);
    }
    for (uint32_t axis = 0; axis < rank; ++axis) {
      uint64_t size = 0;
      if (!read(size, "the tensor table")) return false;
      if (size == 0 || size >> 62 != 0) {
        return fail("tensor {} has a dimension of {}", printable(entry.name), size);
      }
      entry.shape.insert(entry.shape.begin(), static_cast<int64_t>(size));
    }
    return true;
  }

  bool read_dtype(TensorEntry& entry) {
    uint32_t id = 0;
    if (!read(id, "the tensor table")) return false;
    for (const TensorType& type : kTensorTypes) {
      if (type.id != id) continue;
      entry.dtype = type.dtype;
      return true;
    }
    std::string known;
    for (const TensorType& type : kTensorTypes) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", to_string(type.dtype));
    }
    return fail("tensor {} has the type {}; supported: {}", printable(entry.name),
                tensor_type_text(id), known);
  }

  // Gives every tensor its bytes: in the order of offsets, aligned, without overlap or hole.
  bool place_tensors() {
    const uint64_t begin = (at_ + alignment_ - 1) / alignment_ * alignment_;
    if (begin > bytes_.size() && num_tensors_ > 0) return truncated("the padding before the data");
    const auto data = bytes_.subspan(std::min<uint64_t>(begin, bytes_.size()));
    std::vector<size_t> order(out_.tensors.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return offsets_[a] < offsets_[b]; });
    uint64_t end = 0;  // of the tensors placed so far, padded
    for (const size_t i : order) {
      if (!place_tensor(out_.tensors[i], offsets_[i], data, end)) return false;
    }
    if (data.size() <= end) return true;
    return fail("bytes {} to {} at the end of the file belong to no tensor", begin + end,
                bytes_.size());
  }

  bool place_tensor(TensorEntry& entry, uint64_t offset, std::span<const uint8_t> data,
                    uint64_t& end) {
    const auto size = tensor_bytes(entry.dtype, entry.shape);
    const std::string name = printable(entry.name);
    if (!size) {
      return fail("tensor {}: {} {} is impossible: {}", name, to_string(entry.dtype),
                  shape_text(entry.shape),
                  entry.shape.back() % block_elements(entry.dtype) != 0
                      ? "its rows are no whole number of blocks"
                      : "it has more than 2^63 bytes");
    }
    if (offset != end) {
      return fail("tensor {} begins at byte {} of the data, expected {} ({})", name, offset, end,
                  offset % alignment_ != 0 ? fmt::format("the alignment is {}", alignment_)
                  : offset < end           ? "it overlaps another"
                                           : "there is a hole before it");
    }
    const auto bytes = static_cast<uint64_t>(*size);
    if (offset > data.size() || bytes > data.size() - offset) {
      return fail(
          "tensor {}: {} {} needs {} bytes from byte {} of the data, but the file has only "
          "{} (is it truncated?)",
          name, to_string(entry.dtype), shape_text(entry.shape), bytes, offset, data.size());
    }
    entry.bytes = data.subspan(offset, bytes);
    end = (offset + bytes + alignment_ - 1) / alignment_ * alignment_;
    return true;
  }

  std::span<const uint8_t> bytes_;
  const std::string& file_;
  uint64_t at_ = 0;
  uint64_t num_tensors_ = 0, num_keys_ = 0;
  uint32_t alignment_ = kDefaultAlignment;
  std::vector<uint64_t> offsets_;  // of out_.tensors, in the data
  GgufContents out_;
  std::string message_;
};

Result<GgufContents> parse_gguf(std::span<const uint8_t> bytes, const std::string& file) {
  return GgufParser(bytes, file).run();
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  auto contents = parse_gguf(file->bytes(), path);
  if (!contents) return contents.error();
  return GgufFile(*std::move(file), *std::move(contents));
}

}  // namespace briar
