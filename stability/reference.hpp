#pragma once
// What the answers are: Eigen in long double on the values that the methods see (already rounded to the dtype).
// Moments: corrected two-pass; exponentials: shifted by the maximum, compensated sum. The long double of x86 has 64
// significand bits; where it has fewer (it would be no reference for f64) the constructor of a reference throws.
// Sums run over stretches of 64 in Eigen and are joined with compensation, so their error stays near 2^-60 for any n;
// the tests hold them against 100-digit arithmetic and exact rationals.

#include <cstdint>
#include <string>

#include "stability/rows.hpp"

namespace rowtune::stability {

/// `long double: 64 significand bits`; throws EnvironmentError when there are fewer than 64.
std::string reference_precision();

struct MomentsReference {
  std::int64_t n = 0;
  std::int64_t nan_count = 0, inf_count = 0;
  long double min = 0, max = 0;
  long double mean = 0, m2 = 0, variance = 0, sample_variance = 0, sample_sd = 0;
  long double rms = 0;    ///< root of the mean square
  long double kappa = 0;  ///< sqrt(1 + mean^2 / variance); inf when the variance is 0
};
/// n >= 1. With non-finite elements the moments are NaN, as IEEE arithmetic gives.
MomentsReference reference_moments(const RowSource& row);

/// Of the numbers x - shift: what the shifted one-pass form is conditioned by.
long double shifted_kappa(const MomentsReference& moments, long double shift);

struct SoftmaxReference {
  std::int64_t n = 0;
  std::int64_t nan_count = 0, plus_inf_count = 0, minus_inf_count = 0;
  long double max = 0, min = 0;  ///< over the finite elements; 0 when there are none
  long double rest = 0;          ///< sum of exp(x - max) over all but one maximum
  long double log_sum_exp = 0;   ///< NaN if any NaN, else +inf if any +inf, else -inf if all are
  long double range() const { return max - min; }
  long double softmax(long double x) const;      ///< by PyTorch's rule for non-finite rows
  long double log_softmax(long double x) const;  ///< (x - max) - log1p(rest)
};
SoftmaxReference reference_softmax(const RowSource& row);

/// Unrounded outputs of a norm without weights; eps is added to the population variance or mean square.
struct NormReference {
  long double mean = 0, rstd = 0, rms = 0;
  long double output(long double x) const { return (x - mean) * rstd; }
};
NormReference reference_layernorm(const MomentsReference& moments, long double eps);
NormReference reference_rmsnorm(const MomentsReference& moments, long double eps);

}  // namespace rowtune::stability
