#include "stability/bounds.hpp"

#include <algorithm>
#include <cmath>

#include "stability/formats.hpp"

namespace rowtune::stability {
namespace {

constexpr double trusted = 0.1;  ///< the proofs drop or gather terms of order (n u)^2

double squared(double x) { return x * x; }
double gamma(double k, double u) { return k * u / (1 - k * u); }

/// What exp adds beyond the "within u" and exact argument that the bounds assume, in units of u.
struct ExponentialError {
  double each;           ///< for one exponential
  double per_magnitude;  ///< times |argument|: rounding of x * log2 e and of the constant (fast form)
};
ExponentialError exponential_error(const ArithmeticChoice& arithmetic) {
  // The library's exp and exp2 are within 1 ulp = 2 u: one u more than assumed.
  return arithmetic.exponential == Exponential::fast ? ExponentialError{1, 2} : ExponentialError{1, 0};
}

double largest_argument(const SoftmaxReference& r) {
  return static_cast<double>(std::max(std::fabs(r.max), std::fabs(r.min)));
}

bool usable(const SoftmaxReference& r, Dtype arithmetic) {
  return !std::isnan(r.rest) && static_cast<double>(r.n) * format_of(arithmetic).unit_roundoff < trusted;
}

}  // namespace

const char* to_string(BoundKind kind) {
  return kind == BoundKind::none ? "" : kind == BoundKind::proven ? "proven" : "heuristic";
}

Bound variance_bound(const MomentsChoice& choice, Dtype arithmetic, const MomentsReference& reference, double first,
                     const FloatFlags& flags) {
  const double u = format_of(arithmetic).unit_roundoff;
  const auto n = static_cast<double>(reference.n);
  const auto k = static_cast<double>(reference.kappa);
  if (flags.any() || !std::isfinite(k) || !(n * u < trusted)) return {};
  const double h = depth_of(choice.summation, reference.n);
  const double log_n = ceil_log2(reference.n);
  const bool sequential = choice.summation.order == Order::sequential;
  switch (choice.method) {
    case MomentsMethod::one_pass:
      return {BoundKind::proven, (3 * h + 1) * u * k * k + u};
    case MomentsMethod::shifted_one_pass: {
      const auto shifted = static_cast<double>(shifted_kappa(reference, first));
      return {BoundKind::proven, (3 * h + 3) * u * shifted * shifted + u};
    }
    case MomentsMethod::two_pass:
      if (sequential) return {BoundKind::proven, (n + 2) * u + squared(gamma(n, u) * k) * (1 + (n + 2) * u) + u};
      if (choice.summation.order == Order::pairwise)
        return {BoundKind::proven, (log_n + 3) * u + squared((log_n + 1) * u * k) + u};
      return {BoundKind::proven, (h + 2) * u + squared((h + 1) * u * k) + u};
    case MomentsMethod::corrected_two_pass: {
      const double g = gamma(h, u), e = g * k, s = std::sqrt(1 + e * e);
      return {BoundKind::proven, (h + 4) * u * s * s + 2 * e * g * s + g * g * s * s + u};
    }
    case MomentsMethod::welford:
      if (sequential) return {BoundKind::heuristic, (n + 4) * u + n * u * k + squared(n * u * k) + u};
      return {BoundKind::heuristic, (h + 4) * u + h * u * k + squared(h * u * k) + u};
    case MomentsMethod::chan:
      break;
  }
  return {BoundKind::heuristic, (3 * log_n + 3) * u + 2 * log_n * u * k + squared(log_n * u * k) + u};
}

Bound softmax_bound(const SoftmaxChoice& choice, const ArithmeticChoice& arithmetic, Dtype output,
                    const SoftmaxReference& reference, const SoftmaxState& state, const FloatFlags& flags) {
  if (state.flags.any() || flags.any() || !usable(reference, arithmetic.type)) return {};
  const double u = format_of(arithmetic.type).unit_roundoff;
  const double h = depth_of(choice, reference.n);
  const ExponentialError e = exponential_error(arithmetic);
  const auto range = static_cast<double>(reference.range());
  double k = choice.method == SoftmaxMethod::unsafe
                 ? h + 3 + 2 * e.per_magnitude * largest_argument(reference)
                 : h + 2 + 2 * range * (1 + e.per_magnitude) + (2 + e.each) * state.rescales;
  k += 2 * e.each + (arithmetic.reciprocal ? 1 : 0);
  if (!(k * u < trusted)) return {};
  const double stored = output == arithmetic.type ? 0 : format_of(output).unit_roundoff;
  return {BoundKind::proven, gamma(k, u) * (1 + stored) + stored};
}

Bound log_sum_exp_bound(const SoftmaxChoice& choice, const ArithmeticChoice& arithmetic,
                        const SoftmaxReference& reference, const SoftmaxState& state) {
  const auto y = static_cast<double>(std::fabs(reference.log_sum_exp));
  if (state.flags.any() || !usable(reference, arithmetic.type) || y == 0) return {};
  const double u = format_of(arithmetic.type).unit_roundoff;
  const double h = depth_of(choice, reference.n);
  const ExponentialError e = exponential_error(arithmetic);
  const auto range = static_cast<double>(reference.range());
  const double log_sum = static_cast<double>(std::log1p(reference.rest));
  double k = 0;  // in units of u, absolute; the library's log is within 1 ulp, one u more than assumed
  if (choice.method == SoftmaxMethod::unsafe) {
    k = h + 1 + y + e.per_magnitude * largest_argument(reference) + y;
  } else {
    // y + n - min of the shifted bound, with y - max <= log_sum: the rounding of the log, the sum, the differences.
    k = y + log_sum + h + range * (1 + e.per_magnitude) + (2 + e.each) * state.rescales + log_sum;
  }
  k += e.each;
  const double bound = k * u / y * (1 + 2 * static_cast<double>(reference.n) * u);  // log(1 + z) against z
  return {BoundKind::proven, bound};
}

}  // namespace rowtune::stability
