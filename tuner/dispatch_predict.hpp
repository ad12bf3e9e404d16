#pragma once
// How slow each config will be on a shape that was not tuned, by what it was on those that were.

#include <cstddef>
#include <string>
#include <vector>

#include "tuner/dispatch_measured.hpp"

namespace rowtune {

/// Rows that start at other than 16-byte boundaries, or end there.
bool is_ragged(const MeasuredWorkload& workload, Dtype dtype);

/// How much what was measured at one place tells of another: exp(-distance), by the doublings of cols and rows between
/// them.
double nearness(double cols_away, double rows_away, bool same_class);

/// A config's time relative to the best is fitted as a plane over (log cols, log rows) to what was measured, locally:
/// each tuned shape counts exp(-distance) of the asked one, where the distance is 1.5 for each doubling of the columns,
/// 1 for each doubling of the rows, and 1 where one of the two has ragged rows and the other has not. Columns weigh
/// more than rows: they decide what fits where. What else was tried is told in README.md.
class Predictor {
 public:
  /// `measured` is kept.
  Predictor(const MeasuredTable& measured, const std::vector<std::string>& configs);

  /// What a tuned shape adds to the normal equations of every config that was measured there: its weight,
  /// exp(-distance), times powers of the doublings of cols and rows from the asked shape.
  struct Terms {
    double weight, cols, rows, cols_cols, cols_rows, rows_rows;
  };
  /// A shape that is asked about: the terms of each one that was measured, the sum of their weights, and the largest of
  /// those that were swept.
  struct Place {
    double log_rows, log_cols;
    std::vector<Terms> terms;
    double total;
    double most;
  };
  Place place(double rows, double cols, bool ragged) const;
  /// Of a config, by its place in the order given: its time / the best time - 1. Of the best that is hardly below 0.
  double regret(const Place& place, std::size_t config) const;

 private:
  struct Tuned {
    double log_rows, log_cols;  ///< base 2
    bool ragged, swept;
  };
  struct Slowdown {
    std::size_t tuned;  ///< where it was measured
    double excess;      ///< its natural logarithm, less what is expected
  };
  std::vector<Tuned> tuned_;
  std::vector<std::vector<Slowdown>> slowdowns_;  ///< of each config
};

}  // namespace rowtune
