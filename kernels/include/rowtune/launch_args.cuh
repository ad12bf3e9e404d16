#pragma once
// What kernels are given, by value: shared by kernels and by the host that launches them.

namespace rowtune {

/// Pointers are to element (0, 0); strides are between rows, in elements. A tensor that the operation lacks is null.
struct RowArgs {
  const void* input;     ///< fused_add_rmsnorm: hidden
  const void* residual;  ///< fused_add_rmsnorm only
  const void* weight;    ///< cols elements, or null
  const void* bias;      ///< cols elements, or null
  void* output;
  void* residual_out;  ///< fused_add_rmsnorm: the rounded sum
  long long rows;
  long long cols;
  long long input_stride;
  long long residual_stride;
  long long output_stride;
  long long residual_out_stride;
  float eps;
  float weight_offset;  ///< added to each weight (1 for the models that store w - 1)
  unsigned opaque;      ///< 0, which the compiler cannot know: see forget_unpacked
  void* workspace;      ///< split rows only, see exchange.cuh
};

}  // namespace rowtune
