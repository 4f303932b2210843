#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <cstring>
#include <optional>
#include <unordered_set>
#include <utility>

#include "weights/printable.h"

namespace briar {
namespace {

namespace bj = boost::json;

// Absent for GGUF's block formats too: they are none of this format's.
std::optional<WireDType> find_dtype(std::string_view name) {
  for (size_t i = 0; i <= static_cast<size_t>(WireDType::kU64); ++i) {
    if (to_string(static_cast<WireDType>(i)) == name) return static_cast<WireDType>(i);
  }
  return std::nullopt;
}

constexpr size_t kLengthBytes = 8;

// Receives the header's JSON piece by piece. Boost's own tree would keep the last of two equal keys
// without a word, which is how two readers come to see two different models in one file.
class HeaderHandler {
 public:
  static constexpr size_t max_object_size = static_cast<size_t>(-1);
  static constexpr size_t max_array_size = static_cast<size_t>(-1);
  static constexpr size_t max_key_size = static_cast<size_t>(-1);
  static constexpr size_t max_string_size = static_cast<size_t>(-1);

  HeaderHandler(std::span<const uint8_t> data, const std::string& file)
      : data_(data), file_(file) {}

  const std::string& message() const { return message_; }
  std::vector<TensorEntry> take_entries() { return std::move(entries_); }

  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }
  bool on_number_part(bj::string_view, bj::error_code&) { return true; }

  bool on_object_begin(bj::error_code& ec) {
    switch (place_) {
      case Place::kStart: place_ = Place::kTop; return true;
      case Place::kTop:
        if (name_ == "__metadata__") {
          place_ = Place::kMetadata;
        } else {
          begin_tensor();
        }
        return true;
      default: return bad_value("an object", ec);
    }
  }

  bool on_object_end(size_t, bj::error_code& ec) {
    if (place_ == Place::kTensor && !end_tensor(ec)) return false;
    place_ = place_ == Place::kTop ? Place::kStart : Place::kTop;
    return true;
  }

  bool on_array_begin(bj::error_code& ec) {
    if (place_ != Place::kTensor || field_ == kDType) return bad_value("a list", ec);
    place_ = Place::kNumbers;
    return true;
  }

  bool on_array_end(size_t, bj::error_code&) {
    place_ = Place::kTensor;
    return true;
  }

  bool on_key_part(bj::string_view part, size_t, bj::error_code&) {
    key_.append(part.data(), part.size());
    return true;
  }

  bool on_key(bj::string_view part, size_t, bj::error_code& ec) {
    key_.append(part.data(), part.size());
    const std::string key = std::exchange(key_, {});
    if (place_ == Place::kTop) {
      name_ = key;
      if (names_.insert(key).second) return true;
      return fail(fmt::format("tensor {} is listed twice", printable(key)), ec);
    }
    return place_ == Place::kMetadata || begin_field(key, ec);
  }

  bool on_string_part(bj::string_view part, size_t, bj::error_code&) {
    text_.append(part.data(), part.size());
    return true;
  }

  bool on_string(bj::string_view part, size_t, bj::error_code& ec) {
    text_.append(part.data(), part.size());
    const std::string text = std::exchange(text_, {});
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || field_ != kDType) {
      return bad_value(fmt::format("the string \"{}\"", printable(text)), ec);
    }
    const auto dtype = find_dtype(text);
    if (!dtype) return fail_tensor(fmt::format("unknown dtype \"{}\"", printable(text)), ec);
    entry_.dtype = *dtype;
    return true;
  }

  bool on_int64(int64_t number, bj::string_view, bj::error_code& ec) {
    if (place_ != Place::kNumbers) return bad_value(fmt::format("{}", number), ec);
    if (number < 0) return bad_number(fmt::format("{}, which is negative", number), ec);
    const size_t limit = field_ == kShape ? kMaxWireRank : 2;
    if (numbers().size() == limit) {
      return fail_tensor(fmt::format("{} has more than {} entries", kFieldNames[field_], limit),
                         ec);
    }
    numbers().push_back(number);
    return true;
  }

  bool on_uint64(uint64_t number, bj::string_view, bj::error_code& ec) {
    if (place_ != Place::kNumbers) return bad_value(fmt::format("{}", number), ec);
    return bad_number(fmt::format("{}, beyond 2^63", number), ec);
  }

  bool on_double(double number, bj::string_view, bj::error_code& ec) {
    if (place_ != Place::kNumbers) return bad_value(fmt::format("{}", number), ec);
    return bad_number(fmt::format("{}, not an integer below 2^63", number), ec);
  }

  bool on_bool(bool value, bj::error_code& ec) { return bad_value(value ? "true" : "false", ec); }
  bool on_null(bj::error_code& ec) { return bad_value("null", ec); }

 private:
  // Where in the header the next value stands.
  enum class Place { kStart, kTop, kMetadata, kTensor, kNumbers };
  enum Field : size_t { kDType, kShape, kOffsets, kNumFields };
  static constexpr std::array<const char*, kNumFields> kFieldNames = {"dtype", "shape",
                                                                      "data_offsets"};

  bool fail(std::string text, bj::error_code& ec) {
    message_ = fmt::format("{}: {}", file_, text);
    ec = bj::make_error_code(bj::error::exception);
    return false;
  }

  bool fail_tensor(std::string_view text, bj::error_code& ec) {
    return fail(fmt::format("tensor {}: {}", printable(name_), text), ec);
  }

  bool bad_value(std::string_view found, bj::error_code& ec) {
    switch (place_) {
      case Place::kStart: return fail(fmt::format("the header is {}, not an object", found), ec);
      case Place::kTop: return fail_tensor(fmt::format("{} where an object belongs", found), ec);
      case Place::kMetadata:
        return fail(fmt::format("__metadata__ holds {}, not a string", found), ec);
      case Place::kTensor:
        return fail_tensor(fmt::format("{} is {}, expected {}", kFieldNames[field_], found,
                                       field_ == kDType ? "a string" : "a list of integers"),
                           ec);
      case Place::kNumbers: return bad_number(fmt::format("{}, not an integer", found), ec);
    }
    return false;
  }

  bool bad_number(std::string_view found, bj::error_code& ec) {
    return fail_tensor(fmt::format("{}[{}] is {}", kFieldNames[field_], numbers().size(), found),
                       ec);
  }

  std::vector<int64_t>& numbers() { return field_ == kShape ? entry_.shape : offsets_; }

  void begin_tensor() {
    place_ = Place::kTensor;
    entry_ = {};
    offsets_.clear();
    has_field_ = {};
  }

  bool begin_field(const std::string& key, bj::error_code& ec) {
    const auto* found = std::find(kFieldNames.begin(), kFieldNames.end(), key);
    if (found == kFieldNames.end()) {
      return fail_tensor(fmt::format("unknown field \"{}\"", printable(key)), ec);
    }
    field_ = static_cast<Field>(found - kFieldNames.begin());
    if (has_field_[field_]) return fail_tensor(fmt::format("{} is given twice", key), ec);
    has_field_[field_] = true;
    return true;
  }

  bool end_tensor(bj::error_code& ec) {
    for (size_t i = 0; i < kNumFields; ++i) {
      if (!has_field_[i]) return fail_tensor(fmt::format("{} is missing", kFieldNames[i]), ec);
    }
    if (offsets_.size() != 2) {
      return fail_tensor(fmt::format("data_offsets has {} entries, not two", offsets_.size()), ec);
    }
    const int64_t begin = offsets_[0], end = offsets_[1];
    if (begin > end) return fail_tensor(fmt::format("begins at {}, ends at {}", begin, end), ec);
    if (static_cast<uint64_t>(end) > data_.size()) {
      return fail_tensor(fmt::format("ends at byte {} of the data, but the file has only {} bytes "
                                     "of it (is it truncated?)",
                                     end, data_.size()),
                         ec);
    }
    const auto size = tensor_bytes(entry_.dtype, entry_.shape);
    if (!size || *size != end - begin) {
      return fail_tensor(
          fmt::format("{} {} needs {} bytes, data_offsets [{}, {}] give it {}",
                      to_string(entry_.dtype), shape_text(entry_.shape),
                      size ? std::to_string(*size) : "more than 2^63", begin, end, end - begin),
          ec);
    }
    entry_.name = name_;
    entry_.file = file_;
    entry_.bytes = data_.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    entries_.push_back(std::move(entry_));
    return true;
  }

  std::span<const uint8_t> data_;
  const std::string& file_;
  Place place_ = Place::kStart;
  Field field_ = kDType;
  std::string key_, text_;  // what has come of the current key and string
  std::string name_;        // the current tensor
  TensorEntry entry_;
  std::vector<int64_t> offsets_;
  std::array<bool, kNumFields> has_field_{};
  std::unordered_set<std::string> names_;
  std::vector<TensorEntry> entries_;
  std::string message_;
};

Result<std::vector<TensorEntry>> parse_header(std::string_view header,
                                              std::span<const uint8_t> data,
                                              const std::string& file) {
  if (header.empty() || header.front() != '{') {
    return make_error("{}: the header does not begin with '{{' (not a safetensors file?)", file);
  }
  bj::parse_options options;
  options.max_depth = 8;
  bj::basic_parser<HeaderHandler> parser(options, data, file);
  bj::error_code ec;
  const size_t consumed = parser.write_some(false, header.data(), header.size(), ec);
  if (!parser.handler().message().empty()) return Error{.message = parser.handler().message()};
  if (ec == bj::error::incomplete) {
    return make_error("{}: the header's JSON does not end within its {} bytes", file,
                      header.size());
  }
  if (ec) {
    return make_error("{}: bad JSON in the header, at byte {}: {}", file, kLengthBytes + consumed,
                      ec.message());
  }
  const size_t rest = header.find_first_not_of(" \t\r\n", consumed);
  if (rest != header.npos) {
    return make_error("{}: text after the header's JSON, at byte {}", file, kLengthBytes + rest);
  }
  return parser.handler().take_entries();
}

// The ranges must tile the data: neither overlaps nor bytes that belong to nobody.
Status check_layout(const std::vector<TensorEntry>& entries, std::span<const uint8_t> data,
                    const std::string& file) {
  std::vector<const TensorEntry*> order;
  for (const TensorEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const TensorEntry* a, const TensorEntry* b) {
    return std::pair(a->bytes.data(), a->bytes.size()) <
           std::pair(b->bytes.data(), b->bytes.size());
  });
  size_t end = 0;
  const TensorEntry* last = nullptr;
  for (const TensorEntry* entry : order) {
    const auto begin = static_cast<size_t>(entry->bytes.data() - data.data());
    if (begin < end) {
      return make_error(
          "{}: tensors {} and {} overlap: one ends at byte {} of the data, the other "
          "begins at {}",
          file, printable(last->name), printable(entry->name), end, begin);
    }
    if (begin > end) {
      return make_error("{}: bytes {} to {} of the data, before tensor {}, belong to no tensor",
                        file, end, begin, printable(entry->name));
    }
    end = begin + entry->bytes.size();
    last = entry;
  }
  if (end != data.size()) {
    return make_error("{}: bytes {} to {} at the end of the data belong to no tensor", file, end,
                      data.size());
  }
  return Ok{};
}

}  // namespace

Result<std::vector<TensorEntry>> parse_safetensors(std::span<const uint8_t> bytes,
                                                   const std::string& file) {
  if (bytes.size() < kLengthBytes) {
    return make_error("{}: {} bytes are too few for a safetensors file", file, bytes.size());
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  if (header_bytes > kMaxHeaderBytes) {
    return make_error("{}: a header of {} bytes exceeds the limit of {} (not a safetensors file?)",
                      file, header_bytes, kMaxHeaderBytes);
  }
  if (header_bytes > bytes.size() - kLengthBytes) {
    return make_error("{}: the header has {} bytes, but the file only {} (is it truncated?)", file,
                      header_bytes, bytes.size());
  }
  const auto header = bytes.subspan(kLengthBytes, header_bytes);
  const auto data = bytes.subspan(kLengthBytes + header_bytes);
  auto entries =
      parse_header({reinterpret_cast<const char*>(header.data()), header.size()}, data, file);
  if (!entries) return entries;
  if (const Status layout = check_layout(*entries, data, file); !layout) return layout.error();
  return entries;
}

}  // namespace briar
