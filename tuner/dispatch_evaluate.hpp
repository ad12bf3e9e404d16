#pragma once
// How good a table's answers are for shapes that were not tuned.

#include <functional>
#include <string>
#include <vector>

#include "tuner/dispatch_measured.hpp"
#include "tuner/dispatch_table.hpp"

namespace rowtune {

/// One question, what the table answered, and what would have been best.
struct Trial {
  std::string device_model;
  Operation op = Operation::softmax;
  Dtype dtype = Dtype::f32;
  Shape shape;
  MatchKind kind = MatchKind::near;
  std::string config, best_config;
  std::optional<double> time_us;  ///< absent: this config was not measured on this shape
  double best_us = 0;
  bool is_base = false;
  bool beyond = false;  ///< outside the tuned cols or rows that the table was built from: extrapolated
  std::optional<double> regret() const;
};

struct EvaluationSummary {
  std::int64_t trials = 0, unmeasured = 0, base = 0;
  std::optional<double> median, p95, worst;  ///< of the regret, over the trials that have one
};
EvaluationSummary summarise(const std::vector<Trial>& trials);

/// Whether a shape has fewer or more cols or rows than every tuned shape of the table.
bool is_beyond(const DispatchTable& table, const Shape& shape);

/// Leave one out: each tuned shape is asked of the table built without it; the answer is judged by the recorded times
/// of that shape. Places off the grid stay, and are not asked about.
std::vector<Trial> leave_one_out(const std::vector<MeasuredTable>& tables, const DispatchSettings& settings);
std::vector<Trial> leave_one_out(const std::vector<db::BestRow>& leaderboard, const DispatchSettings& settings);

/// Shapes off the grid of a table: between tuned columns and rows, beyond them, and with odd numbers of columns.
std::vector<Shape> shapes_off_grid(const DispatchTable& table);

}  // namespace rowtune
