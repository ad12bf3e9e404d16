#pragma once
// What a kernel is given (RowArgs, by value) and what it is built from (KernelTraits, at compile time).

#include "rowtune/elements.cuh"

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

/// How the exponential is computed.
enum ExpFlavour { exp_is_accurate = 0, exp_is_fast = 1 };
/// How the variance is computed.
enum VarianceMethod { variance_onepass = 1, variance_twopass = 2, variance_welford = 3 };

/// Defaults of the compile-time parameters; a kernel's own traits inherit and hide what differs.
struct KernelTraits {
  using Element = f32;
  static constexpr int block = 128;        ///< threads of a block
  static constexpr int vector = 1;         ///< elements of one access
  static constexpr int vectors = 1;        ///< vectors of a row that one thread holds
  static constexpr int rows_per_warp = 1;  ///< lanes kernels: a power of two up to 32
  static constexpr int split = 1;          ///< blocks that share a row
  static constexpr int batch = 4;          ///< loads in flight of a kernel that re-reads the row
  static constexpr bool ragged = true;     ///< rows may start at any element, or end within a vector
  static constexpr bool packed = false;    ///< keep the row in its dtype, unpack at each use
  static constexpr bool loop = true;       ///< fewer blocks than rows
  static constexpr bool async = false;     ///< shared: fill by asynchronous copies
  static constexpr int load_hint = keep;
  static constexpr int store_hint = keep;
  static constexpr int exp = exp_is_fast;
  static constexpr int variance = variance_welford;
  static constexpr int cols = 0;  ///< columns, when fixed at compile time
  static constexpr bool weight = false;
  static constexpr bool bias = false;
  static constexpr bool adds_residual = false;
};

}  // namespace rowtune
