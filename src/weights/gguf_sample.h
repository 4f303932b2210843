// Small GGUF files for tests, benchmarks and fuzz seeds of weights/.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf.h"

namespace briar {

// Bytes of one value as GGUF writes it.
template <class T>
std::string gguf_bytes(T value) {
  std::string text(sizeof(value), '\0');
  std::memcpy(text.data(), &value, sizeof(value));
  return text;
}
inline std::string gguf_string(std::string_view text) {
  return gguf_bytes<uint64_t>(text.size()).append(text);
}
// Element type, count and elements.
inline std::string gguf_array(GgufType element, uint64_t count, std::string_view elements) {
  return (gguf_bytes(static_cast<uint32_t>(element)) + gguf_bytes(count)).append(elements);
}
inline std::string gguf_strings(const std::vector<std::string>& texts) {
  std::string elements;
  for (const std::string& text : texts) elements += gguf_string(text);
  return gguf_array(GgufType::kString, texts.size(), elements);
}

// Builds files, valid ones unless it is told otherwise.
class GgufBuilder {
 public:
  // `bytes`: the value as the file has it.
  GgufBuilder& key(std::string_view name, GgufType type, std::string_view bytes) {
    ++num_keys;
    keys_ += (gguf_string(name) + gguf_bytes(static_cast<uint32_t>(type))).append(bytes);
    return *this;
  }
  GgufBuilder& key(std::string_view name, std::string_view text) {
    return key(name, GgufType::kString, gguf_string(text));
  }
  GgufBuilder& key(std::string_view name, uint32_t value) {
    return key(name, GgufType::kUint32, gguf_bytes(value));
  }
  GgufBuilder& key(std::string_view name, float value) {
    return key(name, GgufType::kFloat32, gguf_bytes(value));
  }

  // `sizes` fastest first; `type`: ggml's number.
  GgufBuilder& tensor(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type,
                      std::string_view data) {
    entry(name, sizes, type, data_.size());
    data_.append(data);
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  // The table's entry alone.
  GgufBuilder& entry(std::string_view name, const std::vector<uint64_t>& sizes, uint32_t type,
                     uint64_t offset) {
    ++num_tensors;
    table_ += gguf_string(name) + gguf_bytes(static_cast<uint32_t>(sizes.size()));
    for (const uint64_t size : sizes) table_ += gguf_bytes(size);
    table_ += gguf_bytes(type) + gguf_bytes(offset);
    return *this;
  }

  std::string text() const {
    std::string out = "GGUF" + gguf_bytes(version) + gguf_bytes(num_tensors) +
                      gguf_bytes(num_keys) + keys_ + table_;
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    return out + data_;
  }

  uint32_t version = 3;
  uint64_t num_tensors = 0, num_keys = 0;
  uint64_t alignment = 32;

 private:
  std::string keys_, table_, data_;
};

}  // namespace briar
