#pragma once
// Elements of a tensor in memory as exact doubles.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/words.hpp"

namespace rowtune::stability {

inline double half_to_double(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double magnitude = 0;
  if (exponent == 31)
    magnitude = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    magnitude = std::ldexp(fraction, -24);
  else
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

inline double bfloat_to_double(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}

template <class T>
T load_as(const void* base, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

inline double element_at(Dtype dtype, const void* base, std::int64_t index) {
  switch (dtype) {
    case Dtype::f64:
      return load_as<double>(base, index);
    case Dtype::f16:
      return half_to_double(load_as<std::uint16_t>(base, index));
    case Dtype::bf16:
      return bfloat_to_double(load_as<std::uint16_t>(base, index));
    case Dtype::f32:
      break;
  }
  return static_cast<double>(load_as<float>(base, index));
}

}  // namespace rowtune::stability
