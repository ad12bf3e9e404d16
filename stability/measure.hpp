#pragma once
// How wrong an answer is. Errors are taken against the unrounded reference: relative, in ulps of the target format at
// the reference, and as correct decimal digits. Non-finite values are counted apart and never vanish in a maximum.

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/words.hpp"
#include "stability/reference.hpp"

namespace rowtune::stability {

/// log10 relative error of NIST: correct decimal digits, at most 15, at least 0. NaN error: 0 digits.
double lre_of(double relative_error);
inline constexpr double most_lre = 15;

/// A reference, and the size that errors are held against: max(|value|, a least size). The least size is 0 for softmax
/// and statistics, 1 for log_softmax and |weight| (1 without) for the norms: their outputs pass through 0, and their
/// errors do not. rowtune/tolerance.cuh counts ulps the same way.
struct ExpectedNumber {
  long double value = 0;
  long double size = 0;
  double ulp = 0;  ///< distance between neighbours of the target at `size`
};
ExpectedNumber expect(Dtype target, long double reference, long double least_size = 0);

/// Errors of many numbers against their references.
class ErrorTally {
 public:
  /// `target`: whose ulps count. References below the normal range of the target give ulps but no relative error:
  /// subnormal numbers have few digits by nature.
  explicit ErrorTally(Dtype target, double least_size = 0);
  void add(double got, long double reference) { add(got, expect(target_, reference, least_size_)); }
  void add(double got, const ExpectedNumber& expected);
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
  Dtype target_;
  double least_size_, relative_floor_, smallest_, ulp_sum_ = 0;
  std::int64_t finite_ = 0, relative_count_ = 0;
};

/// The references of a kernel's whole output, made once for the many kernels that compute it. Arrays are rows x cols
/// as the workload says (HostTensors); null weight and bias: absent.
class OutputReference {
 public:
  OutputReference(const Workload& workload, const void* input, const void* residual, const void* weight,
                  const void* bias);
  /// Of one row of an output array, as any device left it in memory.
  ErrorTally errors_of_row(const void* output, std::int64_t row) const;

 private:
  Workload workload_;
  std::vector<ExpectedNumber> expected_;  ///< row by row
};

}  // namespace rowtune::stability
