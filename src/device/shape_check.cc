#include "device/shape_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace briar {

void ShapeCheck::fail(const std::string& text) const {
  detail::check_failed(where_, op_, "", text);
}

ShapeCheck& ShapeCheck::operator()(const char* name, const TensorView& tensor,
                                   std::initializer_list<DType> dtypes,
                                   std::initializer_list<Dim> dims) {
  if (!tensor) fail(fmt::format("{} is absent", name));
  if (std::find(dtypes.begin(), dtypes.end(), tensor.dtype()) == dtypes.end()) {
    std::string allowed;
    for (const DType d : dtypes)
      allowed += fmt::format("{}{}", allowed.empty() ? "" : " or ", to_string(d));
    fail(fmt::format("{} is {}, expected {}", name, to_string(tensor.dtype()), allowed));
  }
  if (static_cast<size_t>(tensor.rank()) != dims.size()) {
    fail(fmt::format("{} is {}, expected {} dimensions", name, tensor.describe(), dims.size()));
  }
  if (tensor.stride(tensor.rank() - 1) != 1 && tensor.size(tensor.rank() - 1) > 1) {
    fail(fmt::format("{} is not contiguous in its last dimension", name));
  }
  int axis = 0;
  for (const Dim& dim : dims) {
    check_dim(name, axis, tensor.size(axis), dim);
    ++axis;
  }
  return *this;
}

void ShapeCheck::check_dim(const char* name, int axis, int64_t got, const Dim& dim) {
  if (const auto* expected = std::get_if<int64_t>(&dim)) {
    if (got != *expected)
      fail(fmt::format("{}.shape[{}] is {}, expected {}", name, axis, got, *expected));
    return;
  }
  const std::string_view dim_name = std::get<const char*>(dim);
  for (size_t i = 0; i < num_bound_; ++i) {
    const Bound& b = bound_[i];
    if (b.name != dim_name) continue;
    if (b.size == got) return;
    const std::string from =
        b.tensor == nullptr ? "given" : fmt::format("from {}.shape[{}]", b.tensor, b.axis);
    fail(fmt::format("{}.shape[{}] is {}, but {} = {} ({})", name, axis, got, dim_name, b.size,
                     from));
  }
  CHECK_LT(num_bound_, bound_.size(), "{}: too many named sizes", op_);
  bound_[num_bound_++] = {dim_name, got, name, axis};
}

ShapeCheck& ShapeCheck::bind(const char* name, int64_t size) {
  CHECK_LT(num_bound_, bound_.size(), "{}: too many named sizes", op_);
  bound_[num_bound_++] = {name, size, nullptr, 0};
  return *this;
}

int64_t ShapeCheck::operator[](std::string_view dim) const {
  for (size_t i = 0; i < num_bound_; ++i) {
    if (bound_[i].name == dim) return bound_[i].size;
  }
  fail(fmt::format("no size named {}", dim));
}

}  // namespace briar
