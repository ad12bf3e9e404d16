#pragma once
// The study: cells that each measure every method on one row of data, run side by side, reported in a fixed order.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/words.hpp"
#include "stability/arithmetic.hpp"
#include "stability/bounds.hpp"

namespace rowtune::stability {

/// One measured method: a line of stability.csv.
struct Result {
  std::string experiment, test_case, op, method, order;
  Dtype dtype = Dtype::f32;     ///< of the data and, for outputs, of what is stored
  ArithmeticChoice arithmetic;  ///< what the sums are made in
  std::int64_t n = 0;
  std::string factor;  ///< what the experiment varies, and its value here
  std::optional<double> factor_value;
  std::optional<double> kappa, rel_error, ulp_error, mean_ulp_error;
  std::optional<double> lre, lre_ceiling, lre_certified;
  std::optional<double> bound;
  BoundKind bound_kind = BoundKind::none;
  std::int64_t nan_count = 0, inf_count = 0, negative_count = 0, false_zero_count = 0;
  std::optional<double> value, reference;  ///< of a single statistic
  std::string note;

  bool bound_exceeded() const;  ///< NaN counts as exceeded
  /// Fewer than two correct digits, or a value of the wrong kind, sign or a false zero.
  bool failed() const;
};

struct StudyOptions {
  bool quick = false;
  std::uint64_t seed = 20240229;
  int lanes = 256;  ///< of the order `lanes` where it is not varied
};

struct Cell {
  std::string experiment, label;
  std::function<std::vector<Result>()> run;
};

/// Every experiment's cells, in the order of the report.
std::vector<Cell> study_cells(const StudyOptions& options);
std::vector<Cell> moments_cells(const StudyOptions& options);
std::vector<Cell> norm_cells(const StudyOptions& options);
std::vector<Cell> softmax_cells(const StudyOptions& options);
std::vector<Cell> threshold_cells(const StudyOptions& options);
std::vector<Cell> dataset_cells(const StudyOptions& options);

/// Runs the cells on all cores; results come in the cells' order whatever the timing. `progress(done, total, label)` is
/// called by one thread at a time. The first exception of a cell is rethrown at the end.
std::vector<Result> run_cells(const std::vector<Cell>& cells,
                              const std::function<void(std::size_t, std::size_t, const std::string&)>& progress);

}  // namespace rowtune::stability
