#include "stability/reference.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <cfloat>
#include <cmath>
#include <limits>

#include "kernels/errors.hpp"

namespace rowtune::stability {
namespace {

using Stretch = Eigen::Array<long double, Eigen::Dynamic, 1>;
constexpr long double nan_value = std::numeric_limits<long double>::quiet_NaN();
constexpr long double infinity = std::numeric_limits<long double>::infinity();

/// Neumaier's compensated sum, over the sums of stretches.
class CompensatedSum {
 public:
  void add(long double x) {
    const long double sum = sum_ + x;
    lost_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    sum_ = sum;
  }
  long double value() const { return sum_ + lost_; }

 private:
  long double sum_ = 0, lost_ = 0;
};

/// Calls f with consecutive stretches of the row as exact long doubles.
template <class F>
void for_stretches(const RowSource& row, F f) {
  std::vector<double> values(static_cast<std::size_t>(std::min(row.size(), row_stretch)));
  for (std::int64_t first = 0; first < row.size(); first += row_stretch) {
    const std::span<double> part(values.data(), static_cast<std::size_t>(std::min(row_stretch, row.size() - first)));
    row.read(first, part);
    const Eigen::Map<const Eigen::ArrayXd> all(part.data(), static_cast<Eigen::Index>(part.size()));
    for (Eigen::Index at = 0; at < all.size(); at += 64) {
      const Stretch x = all.segment(at, std::min<Eigen::Index>(64, all.size() - at)).cast<long double>();
      f(x);
    }
  }
}

/// exp(x - max), the rounding of the difference put right: |x - max| may be hundreds.
long double exp_of_difference(long double x, long double max) {
  const long double d = x - max;
  if (!std::isfinite(d)) return std::exp(d);
  const long double back = d + max;  // TwoSum of x and -max
  const long double error = (x - back) + ((back - d) - max);
  return std::exp(d) * (1 + error);
}

}  // namespace

std::string reference_precision() {
  if (LDBL_MANT_DIG < 64)
    throw EnvironmentError(fmt::format(
        "the stability references need a long double of at least 64 significand bits; this platform has {}: "
        "run the study on x86-64, or on a platform with quadruple precision",
        LDBL_MANT_DIG));
  return fmt::format("long double: {} significand bits", LDBL_MANT_DIG);
}

MomentsReference reference_moments(const RowSource& row) {
  reference_precision();
  MomentsReference r;
  r.n = row.size();
  const auto n = static_cast<long double>(r.n);
  CompensatedSum sum, squares;
  r.min = infinity;
  r.max = -infinity;
  for_stretches(row, [&](const Stretch& x) {
    r.nan_count += x.isNaN().count();
    r.inf_count += x.isInf().count();
    sum.add(x.sum());
    squares.add(x.square().sum());
    r.min = std::min(r.min, x.minCoeff());
    r.max = std::max(r.max, x.maxCoeff());
  });
  if (r.nan_count + r.inf_count > 0) {
    r.mean = r.m2 = r.variance = r.sample_variance = r.sample_sd = r.rms = r.kappa = nan_value;
    if (r.nan_count == 0 && !std::isnan(sum.value())) r.mean = sum.value();
    return r;
  }
  const long double first_mean = sum.value() / n;
  CompensatedSum deviations, squared;
  for_stretches(row, [&](const Stretch& x) {
    const Stretch d = x - first_mean;
    deviations.add(d.sum());
    squared.add(d.square().sum());
  });
  const long double off = deviations.value() / n;
  r.mean = first_mean + off;
  r.m2 = std::max(0.0L, squared.value() - deviations.value() * off);
  // All equal: the deviations are the rounding of the mean, not of the data.
  if (r.min == r.max) {
    r.mean = r.min;
    r.m2 = 0;
  }
  r.variance = r.m2 / n;
  r.sample_variance = r.m2 / (n - 1);
  r.sample_sd = std::sqrt(r.sample_variance);
  r.rms = std::sqrt(squares.value() / n);
  r.kappa = r.variance == 0 ? infinity : std::sqrt(1 + r.mean / r.variance * r.mean);
  return r;
}

long double shifted_kappa(const MomentsReference& moments, long double shift) {
  const long double d = moments.mean - shift;
  return moments.variance == 0 ? infinity : std::sqrt(1 + d / moments.variance * d);
}

SoftmaxReference reference_softmax(const RowSource& row) {
  reference_precision();
  SoftmaxReference r;
  r.n = row.size();
  r.max = -infinity;
  r.min = infinity;
  for_stretches(row, [&](const Stretch& x) {
    r.nan_count += x.isNaN().count();
    r.plus_inf_count += (x == infinity).count();
    r.minus_inf_count += (x == -infinity).count();
    for (const long double v : x) {
      if (!std::isfinite(v)) continue;
      r.max = std::max(r.max, v);
      r.min = std::min(r.min, v);
    }
  });
  if (r.nan_count + r.plus_inf_count > 0 || r.minus_inf_count == r.n) {
    if (r.max == -infinity) r.max = r.min = 0;
    r.rest = nan_value;
    r.log_sum_exp = r.nan_count > 0 ? nan_value : r.plus_inf_count > 0 ? infinity : -infinity;
    return r;
  }
  CompensatedSum rest;
  bool saw_max = false;
  for_stretches(row, [&](const Stretch& x) {
    Stretch e = x;
    for (long double& v : e) {
      const bool first_max = v == r.max && !saw_max;
      saw_max |= first_max;
      v = first_max ? 0 : exp_of_difference(v, r.max);
    }
    rest.add(e.sum());
  });
  r.rest = rest.value();
  r.log_sum_exp = r.max + std::log1p(r.rest);
  return r;
}

long double SoftmaxReference::softmax(long double x) const {
  if (std::isnan(rest)) return nan_value;
  return exp_of_difference(x, max) / (1 + rest);
}

long double SoftmaxReference::log_softmax(long double x) const {
  if (std::isnan(rest)) return nan_value;
  return (x - max) - std::log1p(rest);
}

NormReference reference_layernorm(const MomentsReference& m, long double eps) {
  return {m.mean, 1 / std::sqrt(m.variance + eps), m.rms};
}

NormReference reference_rmsnorm(const MomentsReference& m, long double eps) {
  return {0, 1 / std::sqrt(m.rms * m.rms + eps), m.rms};
}

}  // namespace rowtune::stability
