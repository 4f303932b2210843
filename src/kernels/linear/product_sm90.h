// The matrix products of linear() and grouped_linear() on the GPU: one description, three kernels.
#pragma once

#include <cstdint>

#include "device/device.h"
#include "device/tensor.h"

namespace briar::sm90 {

// out[r] = bias[g] + weight[g] x[row_index[r]] for the rows r of group g.
struct Product {
  TensorView x;            // [num_x_rows, k] fp32 or bf16
  TensorView row_index;    // [num_rows] int32; absent: row r of x
  TensorView row_offsets;  // [num_groups + 1] int32 on the device; absent: one group of all rows
  TensorView weight;       // [num_groups, n, k] fp32, bf16 or MXFP4
  TensorView scales;       // [num_groups, n, k / 32] uint8, MXFP4 only
  TensorView bias;         // [num_groups, n] fp32 or bf16; absent: zeros
  TensorView out;          // [num_rows, n] fp32 or bf16
};

// Chooses among the three below by types, alignment and rows a group.
void product(Stream& stream, const Product& p);

// Any types, sizes and strides; a warp an output column.
void product_any(Stream& stream, const Product& p);

// bf16 x, bf16 or MXFP4 weights, few rows: streams the weights once for up to 8 * num_tiles rows of
// each group, num_tiles 1, 2, 4 or 8. An element's order of sums depends on k alone.
void product_stream(Stream& stream, const Product& p, int num_tiles);

// bf16 x, bf16 or MXFP4 weights, many rows: 128 x 128 tiles of the output.
void product_tiled(Stream& stream, const Product& p);

}  // namespace briar::sm90
