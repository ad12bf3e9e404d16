#pragma once
// From a kernel's constants to its launch: threads, blocks, shared memory, workspace, and which rows it can hold. One
// place for the tuner, which compiles configs at run time, and for the launchers of a dispatch table, which nvcc
// compiles. Plain C++17: no CUDA, no standard library.

#include "rowtune/exchange_layout.cuh"

namespace rowtune {
namespace dispatch {

/// How rows are laid over threads, and where a row is kept meanwhile.
enum class Family : unsigned char {
  lanes,           ///< 1 to 32 lanes of a warp a row, in registers
  block,           ///< one block a row, in registers
  shared,          ///< one block a row, in shared memory
  cluster,         ///< a cluster of blocks a row, in registers (sm_90 and up)
  cluster_shared,  ///< a cluster of blocks a row, in shared memory (sm_90 and up)
  split,           ///< blocks that exchange through the L2, in registers
  split_reread,    ///< the same, the row read again
  reread,          ///< one block a row, the row read again: any length
  threepass,       ///< the same with three looks
};

/// The constants of one kernel: the axes of a config, and what a shape adds to them (`vectors`, `ragged`).
struct Kernel {
  Family family;
  int block;          ///< threads of a block
  int rows_per_warp;  ///< lanes only; 1 elsewhere
  int vector;         ///< elements of one access
  int split;          ///< blocks that share a row
  int vectors;        ///< vectors of a row that one thread holds; 0: any number, the row is read again
  bool ragged;        ///< rows may start at any element, or end within a vector
  bool packed;
  bool async;
  int batch;
  int hint;
  int exp;
  int variance;
  int min_blocks;       ///< floor of __launch_bounds__; 0: none
  int resident_blocks;  ///< persistent blocks on each multiprocessor; 0: as many as there are rows
  bool early;           ///< weights wait for the reduction: in registers, or
  bool ahead;           ///< persistent blocks load their next row while they reduce one
  int shared_weights;   ///< this many arrays of them in shared memory; 0: in registers
};

constexpr bool operator==(const Kernel& a, const Kernel& b) {
  return a.family == b.family && a.block == b.block && a.rows_per_warp == b.rows_per_warp && a.vector == b.vector &&
         a.split == b.split && a.vectors == b.vectors && a.ragged == b.ragged && a.packed == b.packed &&
         a.async == b.async && a.batch == b.batch && a.hint == b.hint && a.exp == b.exp && a.variance == b.variance &&
         a.min_blocks == b.min_blocks && a.resident_blocks == b.resident_blocks && a.early == b.early &&
         a.ahead == b.ahead && a.shared_weights == b.shared_weights;
}

constexpr long long grid_limit = 2147483647;

constexpr long long ceil_div(long long a, long long b) { return (a + b - 1) / b; }

constexpr bool rereads(Family f) { return f == Family::reread || f == Family::split_reread || f == Family::threepass; }
constexpr bool uses_clusters(Family f) { return f == Family::cluster || f == Family::cluster_shared; }
constexpr bool exchanges(Family f) { return f == Family::split || f == Family::split_reread; }
constexpr bool uses_shared_rows(Family f) { return f == Family::shared || f == Family::cluster_shared; }
/// Compiles and runs from this compute capability on (75: everything that rowtune supports).
constexpr int least_architecture(const Kernel& k) {
  return uses_clusters(k.family) ? 90 : k.async || k.shared_weights > 0 ? 80 : 75;
}

constexpr int threads_per_row(const Kernel& k) {
  return k.family == Family::lanes ? 32 / k.rows_per_warp : k.block * k.split;
}
/// The most vectors that a thread of a row has to hold, wherever the row begins: what is no whole vector are its edges.
constexpr long long vectors_per_thread(const Kernel& k, long long cols) {
  return ceil_div(cols / k.vector, threads_per_row(k));
}
/// Whether rows of `cols` elements fit.
constexpr bool holds(const Kernel& k, long long cols) {
  return k.vectors == 0 || vectors_per_thread(k, cols) <= k.vectors;
}
/// The longest row that fits; grid_limit where there is no bound.
constexpr long long longest_row(const Kernel& k) {
  if (k.vectors == 0) return grid_limit;
  const long long most =
      static_cast<long long>(threads_per_row(k)) * k.vectors * k.vector + (k.ragged ? k.vector - 1 : 0);
  return most < grid_limit ? most : grid_limit;
}

/// Cache hints of a config: 1 marks all accesses as touched once, 2 all but the first look at a row that is read again.
constexpr int load_hint_of(const Kernel& k) { return k.hint == 1 ? 1 : 0; }
constexpr int later_hint_of(const Kernel& k) { return k.hint > 0 ? 1 : 0; }

/// Where the blocks of a launch come from.
struct Grid {
  long long blocks;     ///< asked for: a multiple of `split`, never beyond the grid's limit
  bool loop;            ///< fewer blocks than rows: each may have several
  bool resident;        ///< at most as many blocks as fit the device at once, a multiple of `split`
  int blocks_per_unit;  ///< resident only: at most this many on a multiprocessor; 0: as many as fit
  int cluster;          ///< blocks of a cluster
  int dynamic_shared;   ///< bytes
};

/// A kernel whose blocks wait for each other, or are persistent, always loops: its grid is bounded by the occupancy of
/// the loaded kernel. A cooperative launch would say so to the driver too, but costs about a microsecond of each launch
/// in a graph (softmax bf16 1x152064 on an H200: 4.96 us with it).
constexpr bool always_loops(const Kernel& k) { return exchanges(k.family) || k.resident_blocks > 0; }

constexpr Grid grid_of(const Kernel& k, long long rows) {
  const long long rows_per_block = k.family == Family::lanes ? k.block / 32 * k.rows_per_warp : 1;
  const long long groups = ceil_div(rows, rows_per_block);
  const long long wanted = (groups < 1 ? 1 : groups) * k.split;
  const long long most = grid_limit / k.split * k.split;
  Grid grid{};
  grid.blocks = wanted < most ? wanted : most;
  grid.loop = always_loops(k) || grid.blocks < wanted;
  grid.resident = always_loops(k);
  grid.blocks_per_unit = k.resident_blocks;
  grid.cluster = uses_clusters(k.family) ? k.split : 1;
  const int arrays = uses_shared_rows(k.family) ? 1 : k.shared_weights;  // of 16 bytes for each of a thread's vectors
  grid.dynamic_shared = arrays * (k.vectors > 1 ? k.vectors : 1) * k.block * 16;
  return grid;
}

/// Whether a launch has to ask for its shared memory (cudaFuncAttributeMaxDynamicSharedMemorySize): more than 48 KB,
/// what the kernel declares itself included.
constexpr bool asks_for_shared(long long declared, long long dynamic) { return declared + dynamic > 48 * 1024; }

/// Bytes through which the blocks of one launch exchange; 0 where they do not.
inline long long workspace_of(const Kernel& k, long long rows) {
  return exchanges(k.family) ? exchange_bytes(rows, k.split) : 0;
}

/// Blocks of a resident grid on a device where `per_unit` fit one of its `units`; 0: not even one row's. Of persistent
/// blocks a multiple of 8 where there are as many: then a step over rows keeps the alignment of ragged ones, and their
/// weights (see Weights).
constexpr long long resident_blocks(int split, int blocks_per_unit, int per_unit, int units) {
  const long long all =
      static_cast<long long>(blocks_per_unit > 0 && blocks_per_unit < per_unit ? blocks_per_unit : per_unit) * units;
  const int eight = split * 8;
  return blocks_per_unit > 0 && all >= eight ? all / eight * eight : all / split * split;
}

/// The floor of __launch_bounds__. Without one ptxas may settle for 32 registers and spill (seen in the split kernels
/// on sm_90).
constexpr int bound_of(const Kernel& k) { return exchanges(k.family) ? 1 : k.min_blocks; }

}  // namespace dispatch
}  // namespace rowtune
