// A file's bytes through the GGUF reader and everything that reads its metadata and tensors.
#include <cmath>
#include <vector>

#include "fuzz/require.h"
#include "weights/convert.h"
#include "weights/gguf_model.h"
#include "weights/rope_config.h"

namespace briar {
namespace {

template <class Body>
void allow_user_error(const Body& body) {
  try {
    body();
  } catch (const UserError& e) {
    require_error_line(e.error.message);
  }
}

void read_values(const GgufMetadata& m) {
  for (const std::string_view key : m.keys()) {
    allow_user_error([&] { m.find_string(key); });
    allow_user_error([&] { m.find_integer(key); });
    allow_user_error([&] { m.find_real(key); });
    allow_user_error([&] { m.find_bool(key); });
    allow_user_error([&] { m.find_strings(key); });
    allow_user_error([&] { m.find_integers(key); });
    allow_user_error([&] { m.find_reals(key); });
  }
}

void read_tensors(const std::vector<TensorEntry>& tensors) {
  for (const TensorEntry& entry : tensors) {
    require(
        entry.bytes.size() == static_cast<size_t>(tensor_bytes(entry.dtype, entry.shape).value()),
        "a tensor has the bytes that its shape asks for");
    std::vector<float> values(static_cast<size_t>(entry.num_elements()));
    if (!convert_dense(entry.dtype, entry.bytes, DType::kFp32, values.data())) {
      require(find_not_finite(entry.dtype, entry.bytes, DType::kFp32).has_value(),
              "what does not convert is found");
    }
  }
}

void read_model(GgufContents& gguf) {
  if (const auto config = gguf_config(gguf)) {
    allow_user_error([&] {
      require(std::isfinite(read_rope(*config).attention_scale()),
              "the attention factor is finite");
    });
  } else {
    require_error_line(config.error().message);
  }
  if (const Status status = rename_gguf_tensors(gguf); !status) {
    require_error_line(status.error().message);
  }
}

}  // namespace
}  // namespace briar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto gguf = briar::parse_gguf({data, size}, "f");
  if (!gguf) {
    briar::require_error_line(gguf.error().message);
    return 0;
  }
  briar::read_values(gguf->metadata);
  briar::read_tensors(gguf->tensors);
  briar::read_model(*gguf);
  return 0;
}
