#pragma once
// The ways to compute a mean and a variance. Merge rules come from rowtune/algebra.cuh, the header the kernels use.

#include <string>
#include <vector>

#include "stability/arithmetic.hpp"
#include "stability/float_flags.hpp"
#include "stability/orders.hpp"
#include "stability/rows.hpp"

namespace rowtune::stability {

enum class MomentsMethod {
  one_pass,            ///< sum and sum of squares: the textbook formula
  shifted_one_pass,    ///< the same on x - x[0]
  two_pass,            ///< mean first, then the squared deviations
  corrected_two_pass,  ///< two-pass less (sum of deviations)^2 / n (Bjorck; Chan, Golub & LeVeque 1983)
  welford,             ///< running mean and M2; lanes are merged by Chan's rule
  chan                 ///< Chan's merge of single elements, pairwise
};

std::string to_string(MomentsMethod method);

struct MomentsChoice {
  MomentsMethod method = MomentsMethod::two_pass;
  Summation summation;
  bool operator==(const MomentsChoice&) const = default;
};

/// Everything the study compares: each method in the orders that make sense for it (chan is pairwise Welford).
std::vector<MomentsChoice> all_moments(int lanes);
/// What rowtune's kernels are made of: two-pass and Welford over lanes.
bool used_by_kernels(const MomentsChoice& choice);

/// Results as exact doubles of the arithmetic type. `m2` is the raw sum of squared deviations: it can be negative.
struct MomentsValue {
  double mean = 0, m2 = 0;
  double variance = 0;         ///< m2 / n
  double sample_variance = 0;  ///< m2 / (n - 1); NaN for n = 1
  double sample_sd = 0;        ///< its root
  FloatFlags flags;
};

/// n >= 1. The row's elements must be numbers of choice.type.
MomentsValue run_moments(const MomentsChoice& choice, const ArithmeticChoice& arithmetic, const RowSource& row);

}  // namespace rowtune::stability
