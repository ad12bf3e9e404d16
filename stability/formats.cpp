#include "stability/formats.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace rowtune::stability {
namespace {

Format make_format(int digits, int least_exponent, int greatest_exponent) {
  const double u = std::ldexp(1.0, -digits);
  return {digits,
          least_exponent,
          std::ldexp(2.0 - 4 * u * 0.5, greatest_exponent),  // (2 - 2u) 2^emax
          u,
          std::ldexp(1.0, least_exponent),
          std::ldexp(1.0, least_exponent - digits + 1)};
}

}  // namespace

const Format& format_of(Dtype dtype) {
  static const Format f32 = make_format(24, -126, 127), f16 = make_format(11, -14, 15),
                      bf16 = make_format(8, -126, 127), f64 = make_format(53, -1022, 1023);
  switch (dtype) {
    case Dtype::f16:
      return f16;
    case Dtype::bf16:
      return bf16;
    case Dtype::f64:
      return f64;
    case Dtype::f32:
      break;
  }
  return f32;
}

Dtype parse_study_dtype(std::string_view text) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16, Dtype::f64})
    if (text == to_string(dtype)) return dtype;
  throw UsageError(fmt::format("unknown dtype '{}'; choose from f32, f16, bf16, f64", text));
}

double round_to(Dtype dtype, long double value) {
  if (value == 0 || !std::isfinite(value)) return static_cast<double>(value);
  const Format& f = format_of(dtype);
  const int grid = std::max(std::ilogb(value), f.least_exponent) - f.digits + 1;  // weight of the last bit
  if (grid > 2000) return std::copysign(std::numeric_limits<double>::infinity(), value < 0 ? -1.0 : 1.0);
  // At most `digits` bits remain before the point: rint (nearest even) and the scalings are exact in long double.
  const long double rounded = std::scalbn(std::rint(std::scalbn(value, -grid)), grid);
  if (std::fabs(rounded) > static_cast<long double>(f.largest))
    return value < 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return static_cast<double>(rounded);
}

long double ulp_at(Dtype dtype, long double value) {
  const Format& f = format_of(dtype);
  if (std::isnan(value)) return std::numeric_limits<long double>::quiet_NaN();
  const long double magnitude = std::fmin(std::fabs(value), static_cast<long double>(f.largest));
  const int exponent = magnitude == 0 ? f.least_exponent : std::max(std::ilogb(magnitude), f.least_exponent);
  return std::scalbn(1.0L, exponent - f.digits + 1);
}

std::int64_t ordinal_of(Dtype dtype, double value) {
  const Format& f = format_of(dtype);
  if (!(value >= f.smallest_normal)) return static_cast<std::int64_t>(value / f.smallest_nonzero);
  const int exponent = std::ilogb(value);
  const std::int64_t binade = std::int64_t{1} << (f.digits - 1);
  const double fraction = std::scalbn(value, f.digits - 1 - exponent);  // in [binade, 2 binade)
  return (exponent - f.least_exponent) * binade + static_cast<std::int64_t>(fraction);
}

double from_ordinal(Dtype dtype, std::int64_t ordinal) {
  const Format& f = format_of(dtype);
  const std::int64_t binade = std::int64_t{1} << (f.digits - 1);
  if (ordinal < binade) return static_cast<double>(ordinal) * f.smallest_nonzero;
  const std::int64_t steps = ordinal / binade - 1;
  return std::scalbn(static_cast<double>(ordinal - steps * binade),
                     static_cast<int>(steps) + f.least_exponent - f.digits + 1);
}

}  // namespace rowtune::stability
