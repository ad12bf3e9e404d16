#pragma once
// fp32 arithmetic of the host, as rowtune/algebra.cuh asks for it.

#include <cmath>
#include <limits>

namespace rowtune::cpu {

struct HostMath {
  static float exp(float x) { return std::exp(x); }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  static float max(float a, float b) { return std::fmax(a, b); }
  static float quotient(float a, float b) { return a / b; }
  static float infinity() { return std::numeric_limits<float>::infinity(); }
  static float from_count(long long count) { return static_cast<float>(count); }
};

}  // namespace rowtune::cpu
