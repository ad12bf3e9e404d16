#pragma once
// How a method computes: its type, with or without fused multiply-add, which exponential, division or reciprocal. The
// policy `Arithmetic` is what the shared algebra (rowtune/algebra.cuh) asks for as M.

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "rowtune/algebra.cuh"
#include "stability/low_precision.hpp"

namespace rowtune::stability {

enum class Exponential {
  accurate,  ///< exp(x) of the C library, within 1 ulp
  /// exp2(x * log2 e), the form of the special-function unit; in f32 results below 2^-126 become 0, as ex2.approx.ftz.
  /// The library's exp2 is within 1 ulp and the unit's within 2: what is measured here is the form, not the unit.
  fast
};

/// One way to compute. Defaults: no fused multiply-add, accurate exponential, true division.
struct ArithmeticChoice {
  Dtype type = Dtype::f32;
  bool fma = false;
  bool reciprocal = false;  ///< a / b as a * (1 / b)
  Exponential exponential = Exponential::accurate;
  bool operator==(const ArithmeticChoice&) const = default;
};

template <class F>
float widened(F x) {
  return x.value();
}

template <class F, bool Fma, bool Reciprocal, Exponential Exp = Exponential::accurate>
struct Arithmetic {
  static constexpr bool native = std::is_floating_point_v<F>;

  static F exp(F x) {
    if constexpr (Exp == Exponential::fast) {
      const F power = exp2(x * from_double(1.4426950408889634074));
      if constexpr (std::is_same_v<F, float>) {
        if (power > 0 && power < std::numeric_limits<float>::min()) {
          std::feraiseexcept(FE_UNDERFLOW);
          return 0.0f;
        }
      }
      return power;
    } else if constexpr (native) {
      return std::exp(x);
    } else {
      return F(std::exp(widened(x)));
    }
  }
  static F exp2(F x) {
    if constexpr (native)
      return std::exp2(x);
    else
      return F(std::exp2(widened(x)));
  }
  static F log(F x) {
    if constexpr (native)
      return std::log(x);
    else
      return F(std::log(widened(x)));
  }
  static F sqrt(F x) {
    if constexpr (native)
      return std::sqrt(x);
    else
      return F(std::sqrt(widened(x)));
  }
  static F fma(F a, F b, F c) {
    if constexpr (!Fma)
      return a * b + c;
    else if constexpr (native)
      return std::fma(a, b, c);
    else
      return F::fused(a, b, c);
  }
  static F max(F a, F b) {  // a NaN argument is ignored
    if (!(a == a)) return b;
    if (!(b == b)) return a;
    return a < b ? b : a;
  }
  static F quotient(F a, F b) {
    if constexpr (Reciprocal)
      return a * (F(1) / b);
    else
      return a / b;
  }
  static F infinity() {
    if constexpr (native)
      return std::numeric_limits<F>::infinity();
    else
      return F::exact(std::numeric_limits<float>::infinity());
  }
  static F from_count(long long n) { return from_double(static_cast<double>(n)); }
  /// One rounding for counts and constants: doubles of at most 24 bits, or constants where the last bit is a choice.
  static F from_double(double x) {
    if constexpr (native)
      return static_cast<F>(x);
    else
      return F(static_cast<float>(x));
  }
  /// Exact: x is a number of the type.
  static F exact(double x) {
    if constexpr (native)
      return static_cast<F>(x);
    else
      return F::exact(static_cast<float>(x));
  }
  static double to_double(F x) {
    if constexpr (native)
      return static_cast<double>(x);
    else
      return static_cast<double>(x.value());
  }
};

/// Calls `body.template operator()<F, M>()` with the type and policy of a choice. `with_exponential`: whether the
/// flavour of exp matters to the body (halves the instantiations where it does not).
template <bool WithExponential, class Body>
auto with_arithmetic(const ArithmeticChoice& choice, Body&& body) {
  const auto for_type = [&]<class F>() {
    const auto for_exp = [&]<bool Fma, bool Reciprocal>() {
      if constexpr (WithExponential) {
        if (choice.exponential == Exponential::fast)
          return body.template operator()<F, Arithmetic<F, Fma, Reciprocal, Exponential::fast>>();
      }
      return body.template operator()<F, Arithmetic<F, Fma, Reciprocal>>();
    };
    if (choice.fma)
      return choice.reciprocal ? for_exp.template operator()<true, true>() : for_exp.template operator()<true, false>();
    return choice.reciprocal ? for_exp.template operator()<false, true>() : for_exp.template operator()<false, false>();
  };
  switch (choice.type) {
    case Dtype::f64:
      return for_type.template operator()<double>();
    case Dtype::f16:
      return for_type.template operator()<Half>();
    case Dtype::bf16:
      return for_type.template operator()<Bfloat>();
    case Dtype::f32:
      break;
  }
  return for_type.template operator()<float>();
}

}  // namespace rowtune::stability
