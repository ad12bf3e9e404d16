#pragma once
// Dispatch tables: for a device, an operation and a dtype, which kernel to launch for a shape, with the evidence.
// Built from the measurements in the database (dispatch_build), written as JSON (dispatch.schema.json) and as a CUDA
// header (dispatch_header), looked up by shape.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/database.hpp"
#include "kernels/include/rowtune/dispatch/lookup.cuh"

namespace rowtune {

/// Why an entry is there: what was measured, with which compiler and sources.
struct DispatchEvidence {
  double time_us = 0;
  std::optional<double> time_lo_us, time_hi_us;  ///< 95 % interval
  std::optional<double> ceiling_fraction;        ///< of the tuned copy of the same bytes
  std::string base_config;
  std::optional<double> base_time_us, gain_over_base;
  int ties = 0;                  ///< configs that cannot be told from the winner
  std::string best_config;       ///< the winner; another one may stand in for it, so that kernels are few
  std::optional<double> regret;  ///< time / the winner's time - 1, at least 0
  std::optional<double> max_error_ulp;
  bool decided = false;  ///< by paired finals; false: by medians and intervals
  std::string toolchain, source_fingerprint;
  int protocol = 0;
  bool operator==(const DispatchEvidence&) const = default;
};

struct DispatchEntry {
  std::int64_t rows = 0, cols = 0;
  int alignment = 0;   ///< bytes that every row start is a multiple of: alignment_of
  int kernel = 0;      ///< index into the table's kernels; -1: the base
  std::string config;  ///< of that kernel
  DispatchEvidence evidence;
  bool operator==(const DispatchEntry&) const = default;
};

/// A kernel to compile: a config, and what a shape adds to it. On a cpu device a config is all there is.
struct DispatchKernel {
  std::string config;
  int vectors = 0;     ///< of a row that one thread holds; 0: any number
  bool ragged = true;  ///< rows may start at any element, or end within a vector
  bool operator==(const DispatchKernel&) const = default;
  auto operator<=>(const DispatchKernel&) const = default;
};

/// Shapes that were not tuned, up to and including these cols and rows (and beyond those of the region before).
struct DispatchRegion {
  std::int64_t cols = 0, rows = 0;
  int kernel = -1;  ///< -1: the base
  bool operator==(const DispatchRegion&) const = default;
};

/// One operation and dtype on one device, in one regime, with one set of options.
struct DispatchTable {
  std::string device_model, device_limits;
  Operation op = Operation::softmax;
  Dtype dtype = Dtype::f32;
  Regime regime = Regime::cold;
  Options options;
  std::vector<DispatchKernel> kernels;
  std::vector<DispatchEntry> entries;           ///< sorted by cols, rows, alignment; one of each
  std::int64_t least_cols = 0, least_rows = 0;  ///< where the tuned range begins; the regions end it
  std::vector<DispatchRegion> aligned, ragged;  ///< rows that start and end at 16-byte boundaries; all others
  bool operator==(const DispatchTable&) const = default;
};

struct DispatchTables {
  std::vector<DispatchTable> tables;  ///< sorted by device, op, dtype, regime, options
  bool operator==(const DispatchTables&) const = default;
};

/// The largest of 16, 8, 4, 2 bytes that divides the start of every row, given an aligned first element minus `off`:
/// what decides how wide a vector access may be. At least the size of an element. A single row has no stride.
int alignment_of(const Shape& shape, Dtype dtype);

struct DispatchSettings {
  double max_regret = 0.02;  ///< time / the winner's time - 1 that a stand-in may have on a tuned shape
  int max_kernels = 48;      ///< of one table; where that is too few, those that gain least go to the base
};

/// The tables of a regime. The copy is a yardstick, not something to dispatch to.
DispatchTables dispatch_tables(const db::Database& database, Regime regime = Regime::cold,
                               const db::BestQuery& only = {}, const DispatchSettings& settings = {});
/// The same from rows of `leaderboard`. No entry is slower than its base. Of shapes that fall together (same rows, cols
/// and alignment) the one nearest to contiguous stays.
DispatchTables dispatch_tables(const std::vector<db::BestRow>& rows, const DispatchSettings& settings = {});

/// Deterministic: the same tables give the same bytes.
std::string to_json(const DispatchTables& tables);
/// Throws EnvironmentError naming `source`, the place in it and what is expected there.
DispatchTables parse_dispatch(const std::string& json, const std::string& source);

/// The CUDA tables as a header for nvcc: data for rowtune/dispatch/launch.cuh. Deterministic.
std::string to_header(const DispatchTables& tables);

/// Writes `dispatch.json` and, where there are CUDA tables, `rowtune_dispatch.cuh` into a folder (made if missing),
/// each under a temporary name that is then renamed: a reader sees the old file or the new one. Returns the paths.
/// Throws EnvironmentError.
std::vector<std::string> write_dispatch(const DispatchTables& tables, const std::string& folder);
DispatchTables read_dispatch(const std::string& path);

/// How well an answer fits the question.
enum class MatchKind {
  exact,         ///< this very rows, cols and alignment class was tuned
  near,          ///< inside the tuned range: chosen by what was measured of similar shapes
  out_of_range,  ///< outside the tuned range: launch the base
  wrong_device,  ///< the tables are for other devices: refused, nothing to launch
  not_tuned      ///< nothing for this operation, dtype, regime and options: launch the base
};
std::string to_string(MatchKind kind);

struct Match {
  MatchKind kind = MatchKind::not_tuned;
  std::string config;                    ///< `base` where that is the answer; empty when wrong_device
  std::optional<DispatchKernel> kernel;  ///< exact and near, but for the base
  std::optional<DispatchEntry> entry;    ///< exact: what was tuned; near: the nearest tuned shape, for comparison
  double cols_factor = 1;                ///< near: how far that shape is away, as a factor >= 1
  double rows_factor = 1;
  std::string sentence;  ///< the answer in words
};

/// Looks a shape up: see rowtune/dispatch/lookup.cuh, which users' programs do it with. `options` default to those of
/// the operation. With `device_limits` absent the first table of the model answers.
Match lookup(const DispatchTables& tables, const std::string& device_model, Operation op, Dtype dtype,
             const Shape& shape, Regime regime = Regime::cold, const std::optional<Options>& options = {},
             const std::optional<std::string>& device_limits = {});

/// A table as the look-up takes it; keeps the arrays that `table` points to.
class LookupTable {
 public:
  explicit LookupTable(const DispatchTable& table);
  /// All tensors contiguous or strided alike, as `shape` says.
  dispatch::Answer look_up(const Shape& shape) const;
  const dispatch::Table& table() const { return table_; }

 private:
  int element_;
  std::vector<dispatch::Kernel> kernels_;
  std::vector<dispatch::Entry> entries_;
  std::vector<dispatch::Region> aligned_, ragged_;
  dispatch::Table table_;
};

/// Whether limits text is a CUDA device's.
bool is_cuda(const std::string& device_limits);
/// The constants of a table's kernel. A cpu kernel takes any row.
dispatch::Kernel constants_of(const DispatchTable& table, const DispatchKernel& kernel);

}  // namespace rowtune
