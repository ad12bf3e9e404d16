#pragma once
// The number formats of the study, and exact questions about them: rounding to nearest even from long double in one
// step, the distance between neighbours, the n-th representable number. Values travel as double, which holds every
// f16, bf16, f32 and f64 exactly.

#include <cstdint>
#include <string_view>

#include "kernels/words.hpp"

namespace rowtune::stability {

struct Format {
  int digits;               ///< significand bits, the hidden one included
  int least_exponent;       ///< the smallest normal number is 2^least_exponent
  double largest;           ///< the largest finite number
  double unit_roundoff;     ///< 2^-digits
  double smallest_normal;   ///< 2^least_exponent
  double smallest_nonzero;  ///< the smallest subnormal
};

const Format& format_of(Dtype dtype);

/// f32, f16, bf16 and, in the study only, f64. Throws UsageError naming the choices.
Dtype parse_study_dtype(std::string_view text);

/// Nearest number of the format, ties to even, overflow to infinity, gradual underflow; NaN stays NaN. One rounding.
double round_to(Dtype dtype, long double value);

/// Distance between neighbouring numbers of the format at |value| (below the normal range: the smallest subnormal; at
/// infinity: the distance below the largest number).
long double ulp_at(Dtype dtype, long double value);

/// The representable numbers >= 0 in order: 0 is number 0, the smallest subnormal number 1. Finite numbers only.
std::int64_t ordinal_of(Dtype dtype, double value);
double from_ordinal(Dtype dtype, std::int64_t ordinal);

}  // namespace rowtune::stability
