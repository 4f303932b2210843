// Run-time shape checks whose messages name the tensors and the sizes they were compared with.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string_view>
#include <variant>

#include "device/tensor.h"

namespace briar {

// Named sizes bind when first seen, later uses must agree:
//
//   ShapeCheck s("rms_norm");
//   s("x", args.x, {DType::kFp32}, {"num_tokens", "hidden_size"})("weight", args.weight, ...);
//   const int64_t hidden_size = s["hidden_size"];
//
// A failure throws CheckError: "rms_norm: weight.shape[0] is 4096, but hidden_size = 5120 (from
// x.shape[1])". Zero is a legal size. Absent optional tensors are not passed.
class ShapeCheck {
 public:
  using Dim = std::variant<const char*, int64_t>;

  explicit ShapeCheck(const char* op, std::source_location where = std::source_location::current())
      : op_(op), where_(where) {}

  ShapeCheck& operator()(const char* name, const TensorView& tensor,
                         std::initializer_list<DType> dtypes, std::initializer_list<Dim> dims);
  int64_t operator[](std::string_view dim) const;
  // Binds a size that no tensor of the call shows by itself.
  ShapeCheck& bind(const char* name, int64_t size);

 private:
  struct Bound {
    std::string_view name;
    int64_t size;
    const char* tensor;  // nullptr: given by bind()
    int axis;
  };
  void check_dim(const char* name, int axis, int64_t got, const Dim& dim);
  [[noreturn]] void fail(const std::string& text) const;

  const char* op_;
  std::source_location where_;
  std::array<Bound, 16> bound_{};
  size_t num_bound_ = 0;
};

}  // namespace briar
