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

ExpectedNumber expect(Dtype target, long double reference, long double least_size) {
  const long double size = std::fmax(std::fabs(reference), least_size);
  return {reference, size, static_cast<double>(ulp_at(target, std::isfinite(reference) ? size : reference))};
}

ErrorTally::ErrorTally(Dtype target, double least_size)
    : target_(target),
      least_size_(least_size),
      relative_floor_(format_of(target).smallest_normal),
      smallest_(format_of(target).smallest_nonzero) {}

void ErrorTally::add(double got, const ExpectedNumber& expected) {
  const long double reference = expected.value;
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
  if (got == 0 && std::fabs(reference) >= static_cast<long double>(smallest_)) ++false_zero_count;
  const auto error = static_cast<double>(std::fabs(static_cast<long double>(got) - reference));
  const double ulps = error / expected.ulp;
  ulp_sum_ += ulps;
  if (ulps > max_ulp) max_ulp = ulps;  // once NaN it stays NaN
  if (expected.size < static_cast<long double>(relative_floor_)) return;
  ++relative_count_;
  const double relative = error / static_cast<double>(expected.size);
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

OutputReference::OutputReference(const Workload& w, const void* input, const void* residual, const void* weight,
                                 const void* bias)
    : workload_(w) {
  if (gives_row_results(w.op)) throw UsageError("the errors of an index and a log-sum-exp are not measured here");
  const std::int64_t cols = w.shape.cols;
  expected_.reserve(static_cast<std::size_t>(w.shape.rows * cols));
  const auto add = [&](long double reference, long double least) {
    expected_.push_back(expect(w.dtype, reference, least));
  };
  for (std::int64_t row = 0; row < w.shape.rows && cols > 0; ++row) {
    const std::int64_t first = w.shape.off + row * w.shape.ld;
    std::vector<double> x = load_row(w.dtype, input, first, cols);
    if (w.op == Operation::fused_add_rmsnorm) {
      const std::vector<double> r = load_row(w.dtype, residual, first, cols);
      for (std::size_t c = 0; c < x.size(); ++c)  // the sum is fp32; rounded to the dtype it is what is normalised
        x[c] = round_to(w.dtype, static_cast<float>(x[c]) + static_cast<float>(r[c]));
    }
    const MemoryRow source(x);
    if (w.op == Operation::softmax || w.op == Operation::log_softmax) {
      const SoftmaxReference reference = reference_softmax(source);
      for (const double v : x) {
        if (w.op == Operation::softmax)
          add(reference.softmax(v), 0);
        else
          add(reference.log_softmax(v), 1);
      }
    } else if (is_norm(w.op)) {
      const MomentsReference moments = reference_moments(source);
      const NormReference reference = w.op == Operation::layernorm ? reference_layernorm(moments, w.options.eps)
                                                                   : reference_rmsnorm(moments, w.options.eps);
      for (std::size_t c = 0; c < x.size(); ++c) {
        const auto at = static_cast<std::int64_t>(c);
        const long double scale = weight ? element_at(w.dtype, weight, at) : 1.0L;
        const long double shift = bias ? element_at(w.dtype, bias, at) : 0.0L;
        add(reference.output(x[c]) * scale + shift, std::fabs(scale));
      }
    } else {
      for (const double v : x) add(v, 0);
    }
  }
}

ErrorTally OutputReference::errors_of_row(const void* output, std::int64_t row) const {
  const Shape& shape = workload_.shape;
  ErrorTally tally(workload_.dtype);
  for (std::int64_t c = 0; c < shape.cols; ++c)
    tally.add(element_at(workload_.dtype, output, shape.off + row * shape.ld + c),
              expected_[static_cast<std::size_t>(row * shape.cols + c)]);
  return tally;
}

}  // namespace rowtune::stability
