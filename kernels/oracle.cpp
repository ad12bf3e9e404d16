#include "kernels/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rowtune/tolerance.cuh"

namespace rowtune {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A binary floating-point format of 16 bits.
struct HalfFormat {
  int digits;    ///< significant bits, the hidden one included
  int lowest;    ///< exponent of the smallest normal number
  int infinity;  ///< bits of +inf
};
constexpr HalfFormat f16_format{11, -14, 0x7c00};
constexpr HalfFormat bf16_format{8, -126, 0x7f80};

double widen(HalfFormat format, std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int magnitude = bits & 0x7fff;
  if (magnitude > format.infinity) return nan;
  if (magnitude == format.infinity) return sign * inf;
  const int stored = 1 << (format.digits - 1);
  const int exponent = magnitude / stored, fraction = magnitude % stored;
  const int scale = format.lowest - (format.digits - 1);
  return sign * (exponent == 0 ? std::ldexp(fraction, scale) : std::ldexp(stored + fraction, scale + exponent - 1));
}

/// Nearest even, straight from double: through float a value could be rounded twice.
std::uint16_t narrow(HalfFormat format, double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | format.infinity | (1 << (format.digits - 2)));
  const double magnitude = std::fabs(value);
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | format.infinity);
  const int stored = 1 << (format.digits - 1);
  int exponent = magnitude == 0 ? format.lowest : std::ilogb(magnitude);
  exponent = std::max(exponent, format.lowest);
  // In units of the last place: [0, stored) is subnormal, [stored, 2 stored] normal; 2 stored carries into the
  // exponent.
  const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.digits - 1 - exponent)));
  const long bits = units < stored ? units : static_cast<long>(exponent - format.lowest) * stored + units;
  return static_cast<std::uint16_t>(sign | std::min<long>(bits, format.infinity));
}

HalfFormat format_of(Dtype dtype) { return dtype == Dtype::f16 ? f16_format : bf16_format; }

/// The ulp of rowtune/tolerance.cuh without its loop.
double fast_ulp(Dtype dtype, double value) {
  const int digits = dtype == Dtype::f32 ? 24 : format_of(dtype).digits;
  const int lowest = dtype == Dtype::f16 ? -14 : -126;
  const int exponent = value == 0 ? lowest : std::clamp(std::ilogb(value), lowest, 127);
  return std::ldexp(1.0, exponent - digits + 1);
}

double largest(Dtype dtype) {
  if (dtype == Dtype::f16) return 65504;
  if (dtype == Dtype::bf16) return 0x1.fep127;
  return dtype == Dtype::f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
}

void softmax_row(const std::vector<double>& x, bool log, RowReference& row) {
  double max = -inf, min = inf;
  bool poisoned = false;
  for (double v : x) {
    if (std::isnan(v) || v == inf) poisoned = true;
    max = std::max(max, v);
    if (std::isfinite(v)) min = std::min(min, v);
  }
  row.spread = std::isfinite(max) ? max - min : 0;
  if (poisoned || max == -inf) {
    std::fill(row.output.begin(), row.output.end(), nan);
    return;
  }
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    row.output[i] = std::exp(x[i] - max);
    sum += row.output[i];
  }
  const double log_sum = std::log(sum);
  for (std::size_t i = 0; i < x.size(); ++i) row.output[i] = log ? x[i] - max - log_sum : row.output[i] / sum;
}

void norm_row(const std::vector<double>& x, bool centred, double eps, const double* weight, const double* bias,
              RowReference& row) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, squares = 0;
  for (double v : x) squares += v * v;
  double variance = squares / n;
  if (centred) {
    for (double v : x) mean += v;
    mean /= n;
    double rest = 0, m2 = 0;
    for (double v : x) {
      rest += v - mean;
      m2 += (v - mean) * (v - mean);
    }
    mean += rest / n;  // both corrected for the rounding of the first mean (Chan, Golub & LeVeque 1983)
    variance = (m2 - rest * rest / n) / n;
  }
  const double rstd = 1 / std::sqrt(variance + eps);
  row.spread = std::sqrt(squares / n) * rstd;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double y = (x[i] - mean) * rstd;
    if (weight) y *= weight[i];
    if (bias) y += bias[i];
    row.output[i] = y;
  }
}

/// torch.argmax's rule: the first NaN, else the first of the largest. log-sum-exp: NaN if any NaN, else +inf if any
/// +inf, else -inf if all are. Nothing for an empty row.
void argmax_row(const std::vector<double>& x, RowReference& row) {
  row.output.clear();
  if (x.empty()) return;
  std::size_t best = 0;
  double min = inf;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i])) min = std::min(min, x[i]);
    if (!std::isnan(x[best]) && (std::isnan(x[i]) || x[i] > x[best])) best = i;
  }
  double log_sum_exp = x[best];
  if (std::isfinite(log_sum_exp)) {
    double sum = 0;
    for (double v : x) sum += std::exp(v - x[best]);
    row.spread = x[best] - min;
    log_sum_exp += std::log(sum);
  }
  row.output = {static_cast<double>(best), log_sum_exp};
}

}  // namespace

double load_element(Dtype dtype, const void* base, std::int64_t index) {
  switch (dtype) {
    case Dtype::f64:
      return static_cast<const double*>(base)[index];
    case Dtype::f32:
      return static_cast<const float*>(base)[index];
    default:
      return widen(format_of(dtype), static_cast<const std::uint16_t*>(base)[index]);
  }
}

void store_element(Dtype dtype, void* base, std::int64_t index, double value) {
  switch (dtype) {
    case Dtype::f64:
      static_cast<double*>(base)[index] = value;
      break;
    case Dtype::f32:
      static_cast<float*>(base)[index] = static_cast<float>(value);
      break;
    default:
      static_cast<std::uint16_t*>(base)[index] = narrow(format_of(dtype), value);
  }
}

RowReference reference_row(const Workload& workload, const std::vector<double>& input,
                           const std::vector<double>& residual, const double* weight, const double* bias) {
  RowReference row;
  row.output.resize(input.size());
  switch (workload.op) {
    case Operation::copy:
      row.output = input;
      break;
    case Operation::softmax:
      softmax_row(input, false, row);
      break;
    case Operation::log_softmax:
      softmax_row(input, true, row);
      break;
    case Operation::layernorm:
      norm_row(input, true, workload.options.eps, weight, bias, row);
      break;
    case Operation::rmsnorm:
      norm_row(input, false, workload.options.eps, weight, nullptr, row);
      break;
    case Operation::fused_add_rmsnorm: {
      row.new_residual.resize(input.size());
      for (std::size_t i = 0; i < input.size(); ++i) {
        // The sum is fp32 arithmetic, rounded once more at the store: both roundings belong to the promise.
        double rounded = static_cast<float>(input[i]) + static_cast<float>(residual[i]);
        double stored = 0;
        store_element(workload.dtype, &stored, 0, rounded);
        row.new_residual[i] = load_element(workload.dtype, &stored, 0);
      }
      norm_row(row.new_residual, false, workload.options.eps, weight, nullptr, row);
      break;
    }
    case Operation::argmax_logsumexp:
      argmax_row(input, row);
      break;
  }
  return row;
}

bool check_element(const Workload& workload, double got, double reference, double spread, double weight, double h,
                   double* error_ulp) {
  const Dtype dtype = workload.dtype;
  *error_ulp = 0;
  if (std::isnan(reference) || std::isinf(reference)) {
    if (std::isnan(reference) ? std::isnan(got) : got == reference) return true;
    *error_ulp = nan;
    return false;
  }
  if (std::isnan(got)) {
    *error_ulp = nan;
    return false;
  }
  const double ulp = fast_ulp(dtype, reference);
  // From here on values round to infinity: that far, and no less, an infinity is off.
  const double overflow = largest(dtype) + 0.5 * fast_ulp(dtype, largest(dtype));
  const bool overflowed = std::isinf(got) && std::signbit(got) == std::signbit(reference);
  const double error = overflowed ? std::max(0.0, overflow - std::fabs(reference)) : std::fabs(got - reference);
  const ToleranceKind kind = workload.op == Operation::copy          ? tolerance_exact
                             : workload.op == Operation::softmax     ? tolerance_softmax
                             : workload.op == Operation::log_softmax ? tolerance_log_softmax
                                                                     : tolerance_norm;
  *error_ulp = error / fast_ulp(dtype, error_size(kind, reference, std::fabs(weight)));
  // Most elements are right at first sight: half an ulp is allowed to all but copies.
  if (kind != tolerance_exact && error <= 0.5 * ulp) return true;
  return error <= tolerance_of(kind, static_cast<int>(dtype), reference, spread, std::fabs(weight), h);
}

double load_output(const Workload& workload, const void* row, std::int64_t col) {
  if (!gives_row_results(workload.op)) return load_element(workload.dtype, row, col);
  if (col == 0) return static_cast<const std::int32_t*>(row)[0];
  return load_element(Dtype::f32, row, col);
}

bool check_output(const Workload& workload, std::int64_t col, double got, double reference, double spread,
                  double weight, double h, double* error_ulp) {
  if (!gives_row_results(workload.op)) return check_element(workload, got, reference, spread, weight, h, error_ulp);
  Workload as = workload;  // the index is exact; a log-sum-exp errs as a log_softmax in f32 does
  as.dtype = Dtype::f32;
  as.op = col == 0 ? Operation::copy : Operation::log_softmax;
  return check_element(as, got, reference, spread, weight, h, error_ulp);
}

}  // namespace rowtune
