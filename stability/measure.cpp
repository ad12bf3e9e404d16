#include "stability/measure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/errors.hpp"
#include "stability/elements.hpp"
#include "stability/formats.hpp"

namespace rowtune::stability {

double lre_of(double relative_error) {
  if (!(relative_error < 1)) return 0;
  if (relative_error == 0) return most_lre;
  return std::min(most_lre, -std::log10(relative_error));
}

double ErrorTally::smallest_normal(Dtype dtype) { return format_of(dtype).smallest_normal; }

void ErrorTally::add(double got, long double reference) {
  ++count;
  nan_count += std::isnan(got);
  inf_count += std::isinf(got);
  const bool same_kind = std::isnan(reference)   ? std::isnan(got)
                         : std::isinf(reference) ? static_cast<long double>(got) == reference
                                                 : std::isfinite(got);
  if (!same_kind) {
    ++kind_mismatch_count;
    max_ulp = max_relative = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (!std::isfinite(reference)) return;
  ++finite_;
  const long double size = std::fabs(reference);
  if (got == 0 && size >= static_cast<long double>(format_of(target_).smallest_nonzero)) ++false_zero_count;
  const long double error = std::fabs(static_cast<long double>(got) - reference);
  const auto ulps = static_cast<double>(error / ulp_at(target_, reference));
  ulp_sum_ += ulps;
  if (ulps > max_ulp) max_ulp = ulps;  // once NaN it stays NaN
  const long double against = std::max(size, static_cast<long double>(least_size_));
  if (against < static_cast<long double>(relative_floor_)) return;
  ++relative_count_;
  const auto relative = static_cast<double>(error / against);
  if (relative > max_relative) max_relative = relative;
}

void ErrorTally::add_variance(double got, long double reference) {
  add(got, reference);
  negative_count += got < 0;
}

namespace {

/// One row's elements as exact doubles.
std::vector<double> load_row(Dtype dtype, const void* base, std::int64_t first, std::int64_t cols) {
  std::vector<double> values(static_cast<std::size_t>(cols));
  for (std::int64_t c = 0; c < cols; ++c) values[static_cast<std::size_t>(c)] = element_at(dtype, base, first + c);
  return values;
}

}  // namespace

OutputErrors measure_output(const Workload& w, const void* input, const void* residual, const void* weight,
                            const void* bias, const void* output) {
  ErrorTally tally(w.dtype, w.op == Operation::log_softmax || is_norm(w.op) ? 1 : 0);
  const std::int64_t cols = w.shape.cols;
  for (std::int64_t row = 0; row < w.shape.rows && cols > 0; ++row) {
    const std::int64_t first = w.shape.off + row * w.shape.ld;
    std::vector<double> x = load_row(w.dtype, input, first, cols);
    const std::vector<double> got = load_row(w.dtype, output, first, cols);
    if (w.op == Operation::fused_add_rmsnorm) {
      const std::vector<double> r = load_row(w.dtype, residual, first, cols);
      for (std::size_t c = 0; c < x.size(); ++c)  // the rounded new residual is what is normalised
        x[c] = round_to(w.dtype, static_cast<long double>(x[c]) + static_cast<long double>(r[c]));
    }
    const MemoryRow source(x);
    if (w.op == Operation::softmax || w.op == Operation::log_softmax) {
      const SoftmaxReference reference = reference_softmax(source);
      for (std::size_t c = 0; c < x.size(); ++c)
        tally.add(got[c], w.op == Operation::softmax ? reference.softmax(x[c]) : reference.log_softmax(x[c]));
    } else if (is_norm(w.op)) {
      const MomentsReference moments = reference_moments(source);
      const NormReference reference = w.op == Operation::layernorm ? reference_layernorm(moments, w.options.eps)
                                                                   : reference_rmsnorm(moments, w.options.eps);
      for (std::size_t c = 0; c < x.size(); ++c) {
        const auto at = static_cast<std::int64_t>(c);
        const long double scale = weight ? element_at(w.dtype, weight, at) : 1.0L;
        const long double shift = bias ? element_at(w.dtype, bias, at) : 0.0L;
        tally.add(got[c], reference.output(x[c]) * scale + shift);
      }
    } else {
      for (std::size_t c = 0; c < x.size(); ++c) tally.add(got[c], x[c]);
    }
  }
  return {tally.max_ulp,   tally.mean_ulp(), tally.max_relative,     tally.count,
          tally.nan_count, tally.inf_count,  tally.false_zero_count, tally.kind_mismatch_count};
}

}  // namespace rowtune::stability
