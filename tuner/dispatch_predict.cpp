#include "tuner/dispatch_predict.hpp"

#include <algorithm>
#include <cmath>

namespace rowtune {
namespace {

constexpr double cols_weight = 1.5, rows_weight = 1, ragged_weight = 1;
const double expected = std::log1p(0.3);  ///< the slowdown of a config that no similar shape has measured
/// How much that expectation, and that a slowdown depends on neither cols nor rows, count beside the measurements: as a
/// share of what all tuned shapes count together, so that few and far measurements say little.
constexpr double of_expectation = 0.1, of_flatness = 0.3;

double log_of(double extent) { return std::log2(std::max(1.0, extent)); }

/// Weighted least squares of y = a + b * cols + c * rows, by its normal equations.
class Plane {
 public:
  explicit Plane(double total_weight) {
    sums_[0][0] = of_expectation * total_weight;
    sums_[1][1] = sums_[2][2] = of_flatness * total_weight;
  }
  void add(double weight, double cols, double rows, double y) {
    const double x[3] = {1, cols, rows};
    for (int i = 0; i < 3; ++i) {
      right_[i] += weight * x[i] * y;
      for (int j = 0; j < 3; ++j) sums_[i][j] += weight * x[i] * x[j];
    }
  }
  /// Its height where cols and rows are 0.
  double height() const {
    double sums[3][3], right[3];
    std::copy(&sums_[0][0], &sums_[0][0] + 9, &sums[0][0]);
    std::copy(right_, right_ + 3, right);
    for (int last = 2; last > 0; --last)
      for (int i = 0; i < last; ++i) {
        const double factor = sums[i][last] / sums[last][last];
        for (int j = 0; j < last; ++j) sums[i][j] -= factor * sums[last][j];
        right[i] -= factor * right[last];
      }
    return right[0] / sums[0][0];
  }

 private:
  double sums_[3][3] = {}, right_[3] = {};
};

}  // namespace

bool is_ragged(const MeasuredWorkload& w, Dtype dtype) {
  return w.alignment < 16 || w.shape.cols * size_of(dtype) % 16 != 0;
}

Predictor::Predictor(const MeasuredTable& measured, const std::vector<std::string>& configs)
    : slowdowns_(configs.size()) {
  for (const auto& w : measured.workloads) {
    for (std::size_t i = 0; i < configs.size(); ++i)
      if (const auto time = w.time_of(configs[i]))
        slowdowns_[i].push_back({tuned_.size(), std::max(0.0, std::log(*time / w.best_us()))});
    tuned_.push_back({log_of(static_cast<double>(w.shape.rows)), log_of(static_cast<double>(w.shape.cols)),
                      is_ragged(w, measured.head.dtype)});
  }
}

Predictor::Place Predictor::place(double rows, double cols, bool ragged) const {
  Place place{log_of(rows), log_of(cols), {}, 0, 0};
  for (const auto& t : tuned_) {
    const double near =
        std::exp(-cols_weight * std::abs(t.log_cols - place.log_cols) -
                 rows_weight * std::abs(t.log_rows - place.log_rows) - ragged_weight * (t.ragged != ragged));
    place.nearness.push_back(near);
    place.total += near;
    place.most = std::max(place.most, near);
  }
  return place;
}

double Predictor::regret(const Place& place, std::size_t config) const {
  Plane plane(place.total);
  for (const auto& [i, slowdown] : slowdowns_[config])
    plane.add(place.nearness[i], tuned_[i].log_cols - place.log_cols, tuned_[i].log_rows - place.log_rows,
              slowdown - expected);
  return std::expm1(expected + plane.height());
}

}  // namespace rowtune
