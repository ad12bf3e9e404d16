#pragma once
// f16 and bf16 as arithmetic types: a float that always holds a number of the format, one rounding per operation.
// Computing + - * / in float and rounding once more is the same as rounding once, because 24 >= 2 * 11 + 2 (Figueroa
// 1995); a fused multiply-add goes through double with rounding to odd. Underflow and overflow raise the processor's
// status flags, as the hardware formats do, so that a run can tell whether a bound's conditions held.

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/words.hpp"

namespace rowtune::stability {

namespace detail {

inline float round_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return x;
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude < 0x00800000u && (bits & 0xffffu) != 0) std::feraiseexcept(FE_UNDERFLOW);
  const float result = std::bit_cast<float>(rounded);
  if (std::isinf(result) && !std::isinf(x)) std::feraiseexcept(FE_OVERFLOW);
  return result;
}

inline float round_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) return x;
  if (magnitude >= 0x477ff000u) {  // 65520, half way from 65504 to 65536
    std::feraiseexcept(FE_OVERFLOW);
    return std::copysign(std::numeric_limits<float>::infinity(), x);
  }
  if (magnitude < 0x38800000u) {  // below 2^-14: the last place of 0.5 is the smallest subnormal, 2^-24
    const float result = std::copysign((std::fabs(x) + 0.5f) - 0.5f, x);
    if (result != x) std::feraiseexcept(FE_UNDERFLOW);
    return result;
  }
  return std::bit_cast<float>((bits + 0xfffu + ((bits >> 13) & 1u)) & 0xffffe000u);
}

/// a * b + c rounded to odd in double: a second rounding to at most 51 bits then gives the correctly rounded result.
inline double fma_to_odd(double a, double b, double c) {
  const double product = a * b;  // exact: at most 22 bits
  const double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (c - back);
  if (error == 0) return sum;
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (bits & 1u) return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/// Double to float, rounded to odd as well: float keeps 24 bits, enough for the last rounding to at most 22.
inline float to_float_odd(double x) {
  float f = static_cast<float>(x);
  if (!std::isfinite(f) || static_cast<double>(f) == x) return f;
  auto bits = std::bit_cast<std::uint32_t>(f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(x)) --bits;  // towards zero first
  return std::bit_cast<float>(bits | 1u);
}

}  // namespace detail

template <Dtype D>
class Low {
  static_assert(D == Dtype::f16 || D == Dtype::bf16);

 public:
  Low() = default;
  explicit Low(float x) : value_(rounded(x)) {}
  explicit Low(int x) : Low(static_cast<float>(x)) {}
  float value() const { return value_; }

  friend Low operator+(Low a, Low b) { return Low(a.value_ + b.value_); }
  friend Low operator-(Low a, Low b) { return Low(a.value_ - b.value_); }
  friend Low operator*(Low a, Low b) { return Low(a.value_ * b.value_); }
  friend Low operator/(Low a, Low b) { return Low(a.value_ / b.value_); }
  Low operator-() const { return exact(-value_); }
  friend bool operator<(Low a, Low b) { return a.value_ < b.value_; }
  friend bool operator==(Low a, Low b) { return a.value_ == b.value_; }

  static Low exact(float x) {
    Low low;
    low.value_ = x;
    return low;
  }
  static Low fused(Low a, Low b, Low c) {
    return Low(detail::to_float_odd(detail::fma_to_odd(a.value_, b.value_, c.value_)));
  }

 private:
  static float rounded(float x) { return D == Dtype::f16 ? detail::round_f16(x) : detail::round_bf16(x); }
  float value_;
};

using Half = Low<Dtype::f16>;
using Bfloat = Low<Dtype::bf16>;

}  // namespace rowtune::stability
