#pragma once
// What a cpu kernel is: functions over rows, or over a slice of a row, chosen once for a config and called by the
// launcher (launch.hpp). They know one SIMD target, one dtype and one unrolling; they know nothing of threads.

#include <cstdint>
#include <string>

#include "kernels/config.hpp"
#include "kernels/words.hpp"
#include "rowtune/algebra.cuh"

namespace rowtune::cpu {

/// The tensors of one launch. Pointers stand at element (0, 0); all tensors share rows, cols and row stride.
struct Tensors {
  const void* input = nullptr;  ///< fused_add_rmsnorm: hidden
  const void* residual = nullptr;
  void* output = nullptr;        ///< may be `input`
  void* new_residual = nullptr;  ///< may be `residual`
  const void* weight = nullptr;  ///< may be null, as may bias
  const void* bias = nullptr;
  std::int64_t rows = 0, cols = 0, ld = 0;
  float eps = 0;
  bool bypass = false;     ///< short rows: stores go past the caches; every row of the output must be aligned
  std::int64_t ahead = 0;  ///< elements from a row to the row that a thread takes p rows later; 0: no prefetch
};

/// Columns [begin, end) of one row.
struct Slice {
  std::int64_t row = 0, begin = 0, end = 0;
};

/// What the first pass over a slice finds; an operation uses one of the three. Slices merge by rowtune/algebra.cuh.
struct Partial {
  MaxSum<float> exponentials;
  Moments<float> moments;
  Sums<float> sums;
  std::int64_t index = 0;  ///< argmax_logsumexp: of the first largest element, beside `exponentials`
};

struct RowKernel {
  /// Runs over all rows, and ends, before anything below starts. Null for all but unfused forms.
  void (*prepare)(const Tensors&, std::int64_t begin, std::int64_t end) = nullptr;
  /// Whole rows [begin, end) at once. Null where a whole row is simply one slice.
  void (*rows)(const Tensors&, std::int64_t begin, std::int64_t end) = nullptr;
  /// Reduce every slice of a row, merge in slice order, finish every slice; several threads may share a row. Null where
  /// rows cannot be shared. `kept` survives from reduce to finish.
  Partial (*reduce)(const Tensors&, Slice, float* kept) = nullptr;
  Partial (*merge)(Partial, Partial) = nullptr;
  void (*finish)(const Tensors&, Slice, Partial mine, Partial whole, float* kept) = nullptr;
  bool keeps_row = false;  ///< whether `kept` is used, as many floats as a slice has columns; else it is null
};

/// The kernel of a config on the SIMD target in use, all null where it is not compiled in (`must` constraints say what
/// is).
RowKernel find_kernel(const Workload& workload, const Config& config);

RowKernel find_copy(Dtype dtype, const Config& config);
RowKernel find_softmax(Dtype dtype, bool log, const Config& config);
RowKernel find_argmax(Dtype dtype, const Config& config);
RowKernel find_norm(const Workload& workload, const Config& config);
/// Algorithm `registers`: rows of at most v vectors, r of them at once.
RowKernel find_short_softmax(Dtype dtype, bool log, const Config& config);
RowKernel find_short_norm(const Workload& workload, const Config& config);

const char* simd_target();  ///< name of the instruction set in use, such as AVX3
int simd_lanes();           ///< fp32 elements of its vectors
std::string highway_version();

}  // namespace rowtune::cpu
