#pragma once
// How wrong an answer is. Errors are taken against the unrounded reference: relative, in ulps of the target format at
// the reference, and as correct decimal digits. Non-finite values are counted apart and never vanish in a maximum.

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/words.hpp"
#include "stability/reference.hpp"

namespace rowtune::stability {

/// log10 relative error of NIST: correct decimal digits, at most 15, at least 0. NaN error: 0 digits.
double lre_of(double relative_error);
inline constexpr double most_lre = 15;

/// Errors of many numbers against their references.
class ErrorTally {
 public:
  /// `target`: whose ulps count. Relative errors are taken against max(|reference|, least_size): 0 for softmax and
  /// statistics, 1 for log_softmax and the norms, whose outputs pass through 0. References below the normal range of
  /// the target give ulps but no relative error: subnormal numbers have few digits by nature.
  explicit ErrorTally(Dtype target, double least_size = 0)
      : target_(target), least_size_(least_size), relative_floor_(smallest_normal(target)) {}
  void add(double got, long double reference);
  /// As a single statistic that must not be negative (a variance).
  void add_variance(double got, long double reference);

  std::int64_t count = 0, nan_count = 0, inf_count = 0, negative_count = 0, false_zero_count = 0;
  std::int64_t kind_mismatch_count = 0;  ///< non-finite where the reference is finite, or of another kind
  double max_ulp = 0, max_relative = 0;  ///< NaN once a kind of non-finite value differed
  double mean_ulp() const { return finite_ == 0 ? 0 : ulp_sum_ / static_cast<double>(finite_); }
  /// Whether any reference was large enough for a relative error.
  bool has_relative() const { return relative_count_ > 0 || kind_mismatch_count > 0; }
  bool all_right_kind() const { return kind_mismatch_count == 0; }

 private:
  static double smallest_normal(Dtype dtype);
  Dtype target_;
  double least_size_, relative_floor_, ulp_sum_ = 0;
  std::int64_t finite_ = 0, relative_count_ = 0;
};

/// Measures a whole output array of a kernel, as any device left it in memory, against the references of this study.
/// Matrices are rows x cols with the workload's row stride (fused_add_rmsnorm: `output` is the normalised result and
/// `residual` the residual before the addition). Null weight and bias: absent.
struct OutputErrors {
  double max_ulp = 0, mean_ulp = 0, max_relative = 0;
  std::int64_t count = 0, nan_count = 0, inf_count = 0, false_zero_count = 0, kind_mismatch_count = 0;
};
OutputErrors measure_output(const Workload& workload, const void* input, const void* residual, const void* weight,
                            const void* bias, const void* output);

}  // namespace rowtune::stability
