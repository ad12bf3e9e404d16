#pragma once
// What a kernel is built from, at compile time. What it is given at a launch is in launch_args.cuh.

#include "rowtune/elements.cuh"
#include "rowtune/launch_args.cuh"

namespace rowtune {

/// How the exponential is computed.
enum ExpFlavour { exp_is_accurate = 0, exp_is_fast = 1 };
/// How the variance is computed.
enum VarianceMethod { variance_onepass = 1, variance_twopass = 2, variance_welford = 3 };

/// The static arrays of a block's shared memory.
enum SharedTag { tag_block_words, tag_cluster_words, tag_exchange_words, tag_weights };

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
  static constexpr bool early = false;  ///< weights wait for the reduction: in registers (ragged lanes: shared memory)
  static constexpr bool ahead = false;  ///< persistent blocks load their next row while they reduce one
  static constexpr bool shared_weights = false;  ///< early: in shared memory, with persistent blocks
  static constexpr bool async = false;           ///< shared: fill by asynchronous copies
  static constexpr int load_hint = keep;         ///< of the first look at a row
  static constexpr int again_hint = keep;        ///< of later looks, where the row is read again
  static constexpr int store_hint = keep;
  static constexpr int exp = exp_is_fast;
  static constexpr int variance = variance_welford;
  static constexpr int cols = 0;  ///< columns, when fixed at compile time
  static constexpr bool weight = false;
  static constexpr bool bias = false;
  static constexpr bool adds_residual = false;
};

}  // namespace rowtune
