#pragma once
// Dispatch tables: for a device, an operation and a dtype, which config to launch for a shape, with the evidence.
// Built from the winners in the database, written as JSON (dispatch.schema.json), looked up by shape.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/database.hpp"

namespace rowtune {

/// Why an entry is there: what was measured, with which compiler and sources.
struct DispatchEvidence {
  double time_us = 0;
  std::optional<double> time_lo_us, time_hi_us;  ///< 95 % interval
  std::optional<double> ceiling_fraction;        ///< of the tuned copy of the same bytes
  std::string base_config;
  std::optional<double> base_time_us, gain_over_base;
  int ties = 0;  ///< configs that cannot be told from this one
  std::optional<double> max_error_ulp;
  bool decided = false;  ///< by paired finals; false: by medians and intervals
  std::string toolchain, source_fingerprint;
  int protocol = 0;
  bool operator==(const DispatchEvidence&) const = default;
};

struct DispatchEntry {
  std::int64_t rows = 0, cols = 0;
  int alignment = 0;  ///< bytes that every row start is a multiple of: alignment_of
  std::string config;
  DispatchEvidence evidence;
  bool operator==(const DispatchEntry&) const = default;
};

/// One operation and dtype on one device, in one regime, with one set of options.
struct DispatchTable {
  std::string device_model, device_limits;
  Operation op = Operation::softmax;
  Dtype dtype = Dtype::f32;
  Regime regime = Regime::cold;
  Options options;
  std::vector<DispatchEntry> entries;  ///< sorted by cols, rows, alignment; one of each
  bool operator==(const DispatchTable&) const = default;
};

struct DispatchTables {
  std::vector<DispatchTable> tables;  ///< sorted by device, op, dtype, regime, options
  bool operator==(const DispatchTables&) const = default;
};

/// The largest of 16, 8, 4, 2 bytes that divides the start of every row, given an aligned first element minus `off`:
/// what decides how wide a vector access may be. At least the size of an element. A single row has no stride.
int alignment_of(const Shape& shape, Dtype dtype);

/// What goes into the tables: the winners of a regime. The copy is a yardstick, not something to dispatch to.
DispatchTables dispatch_tables(const db::Database& database, Regime regime = Regime::cold,
                               const db::BestQuery& only = {});
/// The same from rows of `best`. A row slower than its base becomes the base: no entry is slower than it. Of shapes
/// that fall together (same rows, cols and alignment) the one nearest to contiguous stays.
DispatchTables dispatch_tables(const std::vector<db::BestRow>& rows);

/// Deterministic: the same tables give the same bytes.
std::string to_json(const DispatchTables& tables);
/// Throws EnvironmentError naming `source`, the place in it and what is expected there.
DispatchTables parse_dispatch(const std::string& json, const std::string& source);

/// Writes `dispatch.json` into a folder (made if missing) under a temporary name, then renames: a reader sees the old
/// file or the new one. Returns the path. Throws EnvironmentError.
std::string write_dispatch(const DispatchTables& tables, const std::string& folder);
DispatchTables read_dispatch(const std::string& path);

/// How well an answer fits the question.
enum class MatchKind {
  exact,         ///< this very rows, cols and alignment class was tuned
  near,          ///< the nearest tuned shape within the tuned range
  out_of_range,  ///< outside the tuned range: launch the base
  wrong_device,  ///< the tables are for other devices: refused, nothing to launch
  not_tuned      ///< nothing for this operation, dtype, regime and options: launch the base
};
std::string to_string(MatchKind kind);

struct Match {
  MatchKind kind = MatchKind::not_tuned;
  std::string config;                  ///< `base` when out_of_range or not_tuned; empty when wrong_device
  std::optional<DispatchEntry> entry;  ///< exact and near
  double cols_factor = 1;              ///< near: how far the tuned shape is away, as a factor >= 1
  double rows_factor = 1;
  std::string sentence;  ///< the answer in words
};

/// Looks a shape up. The tuned range: a tuned number of columns within a factor of two, and rows from half the fewest
/// to twice the most that the table has (rows in between are interpolated: the nearest are taken). Inside it the
/// nearest entry is the one nearest in log(cols), then in log(rows), then the smaller; entries of the same alignment
/// class go first, and another class is `near` at best. `options` default to those of the operation. With
/// `device_limits` absent the first table of the model answers.
Match lookup(const DispatchTables& tables, const std::string& device_model, Operation op, Dtype dtype,
             const Shape& shape, Regime regime = Regime::cold, const std::optional<Options>& options = {},
             const std::optional<std::string>& device_limits = {});

}  // namespace rowtune
