#pragma once
// From a config to what must be compiled and launched. Plain data: needs no GPU and no CUDA Toolkit, so that spaces,
// tests and the emulator use it too.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/config.hpp"
#include "kernels/device.hpp"
#include "kernels/include/rowtune/dispatch/geometry.cuh"
#include "kernels/words.hpp"

namespace rowtune::cuda {

struct Launch {
  std::string function;     ///< extern "C" name in the source
  std::int64_t blocks = 0;  ///< blocks asked for; never more than the grid's limit
  bool resident = false;    ///< at most as many blocks as fit the device at once, a multiple of `split`
  int blocks_per_unit = 0;  ///< resident only: at most this many on a multiprocessor; 0 as many as fit
  int cluster = 1;          ///< blocks of a cluster
  int dynamic_shared = 0;   ///< bytes
};

struct Plan {
  std::string source;  ///< a whole translation unit over rowtune/kernels.cuh
  int block = 0;       ///< threads
  int split = 1;
  std::vector<Launch> launches;
  std::int64_t workspace_bytes = 0;  ///< zeroed once by whoever allocates it
  double depth = 0;                  ///< of the summation, for the tolerance
};

/// Geometry that code depends on: how a matrix's rows lie over vectors.
struct RowLayout {
  int vector = 1;            ///< elements of one access
  bool ragged = false;       ///< rows do not all start and end at vector boundaries
  std::int64_t vectors = 0;  ///< whole ones of a row, at most; what is left at its ends are edges (rows.cuh)
};

/// Elements of one access of at most 16 bytes: 4 for f32, 8 for f16 and bf16.
int widest_vector(Dtype dtype);
RowLayout row_layout(const Workload& workload, int vector);
/// Threads that share a row, and the vectors that each of them holds.
int threads_per_row(const Config& config);
std::int64_t vectors_per_thread(const Workload& workload, const Config& config);

/// The family of an algorithm that a dispatch table may hold; none for copy, unsafe and two_launches (whose partial
/// results would overwrite the workspace of the others).
std::optional<dispatch::Family> family_of(const std::string& algorithm);
/// The compile-time constants that a config gets for a workload.
dispatch::Kernel kernel_for(const Workload& workload, const Config& config);

/// Headers of rowtune/ that only some operations are made of.
std::vector<std::string> operation_headers(Operation op);

/// The config must be legal (parse_config, enumerate_space).
Plan plan_kernel(const Workload& workload, const Config& config);

}  // namespace rowtune::cuda
