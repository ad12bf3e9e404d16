#include "tuner/dispatch_predict.hpp"

#include <algorithm>
#include <cmath>

namespace rowtune {
namespace {

constexpr double cols_weight = 1.5, rows_weight = 1, ragged_weight = 1;
const double expected = std::log1p(0.3);  ///< the slowdown of a config that no similar shape has measured
const double of_failure = std::log(10);   ///< that of one that failed on a shape: it may fail on similar ones
/// How much that expectation, and that a slowdown depends on neither cols nor rows, count beside the measurements: as a
/// share of what all tuned shapes count together, so that few and far measurements say little.
constexpr double of_expectation = 0.1, of_flatness = 0.3;

double log_of(double extent) { return std::log2(std::max(1.0, extent)); }

/// Weighted least squares: the height where cols and rows are 0 of the plane y = a + b * cols + c * rows, by its normal
/// equations.
double height_of(double (&sums)[3][3], double (&right)[3]) {
  for (int last = 2; last > 0; --last)
    for (int i = 0; i < last; ++i) {
      const double factor = sums[i][last] / sums[last][last];
      for (int j = 0; j < last; ++j) sums[i][j] -= factor * sums[last][j];
      right[i] -= factor * right[last];
    }
  return right[0] / sums[0][0];
}

}  // namespace

double nearness(double cols_away, double rows_away, bool same_class) {
  return std::exp(-cols_weight * std::abs(cols_away) - rows_weight * std::abs(rows_away) - ragged_weight * !same_class);
}

bool is_ragged(const MeasuredWorkload& w, Dtype dtype) {
  return w.alignment < 16 || w.shape.cols * size_of(dtype) % 16 != 0;
}

Predictor::Predictor(const MeasuredTable& measured, const std::vector<std::string>& configs)
    : slowdowns_(configs.size()) {
  for (const auto& w : measured.workloads) {
    for (std::size_t i = 0; i < configs.size(); ++i)
      if (const auto time = w.time_of(configs[i]))
        slowdowns_[i].push_back({tuned_.size(), std::max(0.0, std::log(*time / w.best_us())) - expected});
      else if (w.failed.contains(configs[i]))
        slowdowns_[i].push_back({tuned_.size(), of_failure - expected});
    tuned_.push_back({log_of(static_cast<double>(w.shape.rows)), log_of(static_cast<double>(w.shape.cols)),
                      is_ragged(w, measured.head.dtype), w.swept});
  }
}

Predictor::Place Predictor::place(double rows, double cols, bool ragged) const {
  Place place{log_of(rows), log_of(cols), {}, 0, 0};
  place.terms.reserve(tuned_.size());
  for (const auto& t : tuned_) {
    const double cols_away = t.log_cols - place.log_cols, rows_away = t.log_rows - place.log_rows;
    const double near = nearness(cols_away, rows_away, t.ragged == ragged);
    place.terms.push_back({near, near * cols_away, near * rows_away, near * cols_away * cols_away,
                           near * cols_away * rows_away, near * rows_away * rows_away});
    place.total += near;
    if (t.swept) place.most = std::max(place.most, near);
  }
  return place;
}

double Predictor::regret(const Place& place, std::size_t config) const {
  double weight = of_expectation * place.total, cols = 0, rows = 0;
  double cols_cols = of_flatness * place.total, cols_rows = 0, rows_rows = cols_cols;
  double right[3] = {};
  for (const auto& [tuned, excess] : slowdowns_[config]) {
    const auto& term = place.terms[tuned];
    weight += term.weight, cols += term.cols, rows += term.rows;
    cols_cols += term.cols_cols, cols_rows += term.cols_rows, rows_rows += term.rows_rows;
    right[0] += term.weight * excess, right[1] += term.cols * excess, right[2] += term.rows * excess;
  }
  double sums[3][3] = {{weight, cols, rows}, {cols, cols_cols, cols_rows}, {rows, cols_rows, rows_rows}};
  return std::expm1(expected + height_of(sums, right));
}

}  // namespace rowtune
