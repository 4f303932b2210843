// Chooses the kernel of a product.
#include "kernels/linear/linear.h"
#include "kernels/linear/product_sm90.h"
#include "kernels/moe/grouped_linear.h"

namespace briar::sm90 {
namespace {

bool is_aligned(const TensorView& t) { return reinterpret_cast<uintptr_t>(t.data()) % 16 == 0; }

// The fast kernels load 16 bytes at a time and step through k by 32.
bool is_fast(const Product& p) {
  const bool is_narrow = p.weight.dtype() == DType::kBf16 || p.weight.dtype() == DType::kMxfp4;
  return p.x.dtype() == DType::kBf16 && is_narrow && p.weight.size(2) % 32 == 0 &&
         p.x.stride(0) % 8 == 0 && is_aligned(p.x) && is_aligned(p.weight);
}

}  // namespace

void product(Stream& stream, const Product& p) {
  if (!is_fast(p)) return product_any(stream, p);
  // Rows a group: the true counts are on the device.
  const int64_t rows = p.out.size(0), num_groups = p.weight.size(0);
  const bool is_grouped = static_cast<bool>(p.row_offsets);
  if (rows > (is_grouped ? 24 * num_groups : 64)) return product_tiled(stream, p);
  const int64_t expected = is_grouped ? 2 * rows / num_groups : rows;
  product_stream(stream, p, expected <= 8 ? 1 : expected <= 16 ? 2 : expected <= 32 ? 4 : 8);
}

void linear(Stream& stream, const LinearArgs& a) {
  const int64_t n = a.weight.size(0), k = a.weight.size(1);
  Product p{.x = a.x,
            .row_index = {},
            .row_offsets = {},
            .weight = a.weight.reshape({1, n, k}),
            .scales = {},
            .bias = {},
            .out = a.out};
  if (a.weight_scales) p.scales = a.weight_scales.reshape({1, n, k / 32});
  if (a.bias) p.bias = a.bias.reshape({1, n});
  product(stream, p);
}

void grouped_linear(Stream& stream, const GroupedLinearArgs& a) {
  product(stream, {.x = a.x,
                   .row_index = a.row_index,
                   .row_offsets = a.row_offsets,
                   .weight = a.weight,
                   .scales = a.weight_scales,
                   .bias = a.bias,
                   .out = a.out});
}

}  // namespace briar::sm90
