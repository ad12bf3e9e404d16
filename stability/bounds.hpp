#pragma once
// What theory says the error may be, beside what is measured. u: unit roundoff of the arithmetic, n: elements, h: depth
// of the summation, k = sqrt(1 + mean^2 / var). Relative to the exact statistic of the data that the method saw.
//
// Proven (for n u < 0.1, and only where nothing overflowed or underflowed; otherwise there is no bound):
//   one-pass           (3 n + 1) u k^2             over lanes and pairwise with h in the place of n
//   shifted one-pass   (3 h + 3) u k_s^2           k_s: k of x - x[0]; rounding the differences costs 2 u k_s
//   two-pass           (n + 2) u + (g_n k)^2 (1 + (n + 2) u),  g_n = n u / (1 - n u)
//     over lanes       (h + 2) u + ((h + 1) u k)^2
//     pairwise         (log2 n + 3) u + ((log2 n + 1) u k)^2
//   corrected          (h + 4) u (1 + e^2) + 2 e g s + g^2 s^2, with g = h u / (1 - h u), e = g k the mean's error in
//                      standard deviations and s = sqrt(1 + e^2) the computed deviations' size
//   these are for the sum of squares; the variance: + u
//   softmax            g_K, K u / (1 - K u) with K = n + 3 unshifted, n + 2 + 2 (max - min) shifted
//   log-sum-exp        (1 + (n + 1) / |y|) u unshifted, (1 + (|y| + n + max - min) / |y|) u shifted, y the result
// and for what the exponential adds, see ExponentialError. Reference curves, not proofs: Welford
// (n + 4) u + n u k + (n u k)^2; Chan, L = ceil(log2 n): (3 L + 3) u + 2 L u k + (L u k)^2.
// Sources: Chan, Golub & LeVeque 1983; Blanchard, Higham & Higham 2021; Higham 2002.

#include <optional>

#include "stability/arithmetic.hpp"
#include "stability/moments.hpp"
#include "stability/reference.hpp"
#include "stability/softmax.hpp"

namespace rowtune::stability {

enum class BoundKind { none, proven, heuristic };
const char* to_string(BoundKind kind);  ///< none: ""

struct Bound {
  BoundKind kind = BoundKind::none;
  double value = 0;
};

/// Of the variance (population or sample), relative. `first`: the row's first element.
Bound variance_bound(const MomentsChoice& choice, Dtype arithmetic, const MomentsReference& reference, double first,
                     const FloatFlags& flags);
/// Of the worst softmax output, relative, before and after rounding to the dtype of the output.
Bound softmax_bound(const SoftmaxChoice& choice, const ArithmeticChoice& arithmetic, Dtype output,
                    const SoftmaxReference& reference, const SoftmaxState& state, const FloatFlags& flags);
/// Of log-sum-exp, relative.
Bound log_sum_exp_bound(const SoftmaxChoice& choice, const ArithmeticChoice& arithmetic,
                        const SoftmaxReference& reference, const SoftmaxState& state);

}  // namespace rowtune::stability
