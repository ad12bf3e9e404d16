#pragma once
// LayerNorm and RMSNorm outputs on top of each way to compute a variance.

#include <functional>

#include "stability/moments.hpp"

namespace rowtune::stability {

/// A norm on one row, reduced and ready to give outputs. Without weights: they only scale the error.
class NormRun {
 public:
  /// layernorm with the variance of `choice`, clamped at 0; rmsnorm ignores choice.method (there is no mean to lose).
  NormRun(Operation op, const MomentsChoice& choice, const ArithmeticChoice& arithmetic, double eps,
          const RowSource& row);
  double rstd() const { return rstd_; }
  bool negative_variance() const { return negative_; }  ///< before the clamp
  const FloatFlags& flags() const { return flags_; }
  /// Outputs of elements first .. first + out.size() - 1, unrounded by the tensor's dtype.
  void output(std::int64_t first, std::span<double> out) const;

 private:
  const RowSource* row_;
  double rstd_ = 0;
  bool negative_ = false;
  FloatFlags flags_;
  std::function<void(std::span<double>)> emit_;
};

}  // namespace rowtune::stability
