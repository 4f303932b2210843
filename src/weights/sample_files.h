// Small model folders for tests and benchmarks of weights/.
#pragma once

#include <fmt/core.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace briar {

// A folder of this test's own, removed at its end.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "briar-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + name);
  }

 private:
  std::string path_;
};

inline std::string safetensors_text(std::string_view header, std::string_view data) {
  const uint64_t size = header.size();
  std::string text(sizeof(size), '\0');
  std::memcpy(text.data(), &size, sizeof(size));
  return text.append(header).append(data);
}

// Builds valid files.
class SafetensorsBuilder {
 public:
  template <class T>
  SafetensorsBuilder& add(const std::string& name, const char* dtype, const std::string& shape,
                          const std::vector<T>& values) {
    const size_t begin = data_.size();
    data_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    header_ += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                           header_.empty() ? "" : ",", name, dtype, shape, begin, data_.size());
    return *this;
  }
  std::string text() const { return safetensors_text("{" + header_ + "}", data_); }

 private:
  std::string header_;
  std::string data_;
};

inline std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace briar
