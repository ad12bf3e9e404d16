#pragma once
// What threads agree on in a reduction: a few words each, with the merge over lanes of a warp. The merge rules
// themselves are algebra.cuh's. `merges_at_once`: a merge is an instruction a word.

#include "rowtune/primitives.cuh"

namespace rowtune {

/// How a GPU computes, for the algebra. The exponential's flavour is the kernel's.
template <int Exp>
struct DeviceMath {
  static ROWTUNE_DEVICE float exp(float x) {
    // x - max is exact or nearly so; log2(e) is multiplied in afterwards, so that exp(0) = 1 exactly. Folding the
    // constant into an fma, x L - max L, does not give 0 at x = max.
    return Exp == 1 ? exp2_fast(x * 1.44269504088896340736f) : exp_accurate(x);
  }
  static ROWTUNE_DEVICE float fma(float a, float b, float c) { return multiply_add(a, b, c); }
  static ROWTUNE_DEVICE float max(float a, float b) { return larger(a, b); }
  static ROWTUNE_DEVICE float quotient(float a, float b) { return rowtune::quotient(a, b); }
  static ROWTUNE_DEVICE float infinity() { return rowtune::infinity(); }
  static ROWTUNE_DEVICE float from_count(long long n) { return static_cast<float>(n); }
};

/// Maximum over aligned groups of `Lanes` lanes; every lane gets it. x is not a NaN.
template <int Lanes>
ROWTUNE_DEVICE float lanes_max(float x) {
  if constexpr (Lanes == 32) {
    return warp_max(x);
  } else {
#pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) x = larger(x, shuffle_xor(x, d));
    return x;
  }
}
template <int Lanes>
ROWTUNE_DEVICE float lanes_sum(float x) {
#pragma unroll
  for (int d = Lanes / 2; d > 0; d /= 2) x += shuffle_xor(x, d);
  return x;
}
template <int Lanes>
ROWTUNE_DEVICE int lanes_sum(int x) {
#pragma unroll
  for (int d = Lanes / 2; d > 0; d /= 2) x += shuffle_xor(x, d);
  return x;
}

struct MaxState {
  static constexpr int words = 1;
  static constexpr bool merges_at_once = true;
  float max;
  static ROWTUNE_DEVICE MaxState empty() { return {-infinity()}; }
  ROWTUNE_DEVICE unsigned word(int) const { return bits_of(max); }
  static ROWTUNE_DEVICE MaxState of(const unsigned* w) { return {float_of(w[0])}; }
  static ROWTUNE_DEVICE MaxState merge(MaxState a, MaxState b) { return {larger(a.max, b.max)}; }
  template <int Lanes>
  ROWTUNE_DEVICE MaxState over_lanes() const {
    return {lanes_max<Lanes>(max)};
  }
};

struct SumState {
  static constexpr int words = 1;
  static constexpr bool merges_at_once = true;
  float sum;
  static ROWTUNE_DEVICE SumState empty() { return {0.0f}; }
  ROWTUNE_DEVICE unsigned word(int) const { return bits_of(sum); }
  static ROWTUNE_DEVICE SumState of(const unsigned* w) { return {float_of(w[0])}; }
  static ROWTUNE_DEVICE SumState merge(SumState a, SumState b) { return {a.sum + b.sum}; }
  template <int Lanes>
  ROWTUNE_DEVICE SumState over_lanes() const {
    return {lanes_sum<Lanes>(sum)};
  }
};

struct SumsState {
  static constexpr int words = 2;
  static constexpr bool merges_at_once = true;
  Sums<float> sums;
  static ROWTUNE_DEVICE SumsState empty() { return {sums_empty<float>()}; }
  ROWTUNE_DEVICE unsigned word(int i) const { return bits_of(i == 0 ? sums.sum : sums.squares); }
  static ROWTUNE_DEVICE SumsState of(const unsigned* w) { return {{float_of(w[0]), float_of(w[1])}}; }
  static ROWTUNE_DEVICE SumsState merge(SumsState a, SumsState b) { return {sums_merge(a.sums, b.sums)}; }
  template <int Lanes>
  ROWTUNE_DEVICE SumsState over_lanes() const {
    return {{lanes_sum<Lanes>(sums.sum), lanes_sum<Lanes>(sums.squares)}};
  }
};

/// (max, sum) of softmax. Over lanes it is merged n-ary: the maximum first, then every sum scaled to it once.
template <int Exp>
struct MaxSumState {
  static constexpr int words = 2;
  static constexpr bool merges_at_once = false;
  using Math = DeviceMath<Exp>;
  MaxSum<float> value;
  static ROWTUNE_DEVICE MaxSumState empty() { return {max_sum_empty<float, Math>()}; }
  ROWTUNE_DEVICE unsigned word(int i) const { return bits_of(i == 0 ? value.max : value.sum); }
  static ROWTUNE_DEVICE MaxSumState of(const unsigned* w) { return {{float_of(w[0]), float_of(w[1])}}; }
  static ROWTUNE_DEVICE MaxSumState merge(MaxSumState a, MaxSumState b) {
    return {max_sum_merge<float, Math>(a.value, b.value)};
  }
  template <int Lanes>
  ROWTUNE_DEVICE MaxSumState over_lanes() const {
    const float max = lanes_max<Lanes>(value.max);
    return {{max, lanes_sum<Lanes>(max_sum_at<float, Math>(value, max))}};
  }
};

struct MomentsState {
  static constexpr int words = 3;
  static constexpr bool merges_at_once = false;
  using Math = DeviceMath<1>;
  Moments<float> value;
  static ROWTUNE_DEVICE MomentsState empty() { return {moments_empty<float>()}; }
  ROWTUNE_DEVICE unsigned word(int i) const {
    return i == 0 ? static_cast<unsigned>(value.count) : bits_of(i == 1 ? value.mean : value.m2);
  }
  static ROWTUNE_DEVICE MomentsState of(const unsigned* w) {
    return {{static_cast<int>(w[0]), float_of(w[1]), float_of(w[2])}};
  }
  static ROWTUNE_DEVICE MomentsState merge(MomentsState a, MomentsState b) {
    return {moments_merge<float, Math>(a.value, b.value)};
  }
  /// n-ary: count and mean of the union first, then every M2 moved to that mean. No division but one, and sums over
  /// lanes are the same bits in every lane.
  template <int Lanes>
  ROWTUNE_DEVICE MomentsState over_lanes() const {
    const int count = lanes_sum<Lanes>(value.count);
    const float sum = lanes_sum<Lanes>(Math::from_count(value.count) * value.mean);
    const float mean = count == 0 ? 0.0f : over_count(sum, Math::from_count(count));
    return {{count, mean, lanes_sum<Lanes>(value.count == 0 ? 0.0f : moments_about<float, Math>(value, mean))}};
  }
};

}  // namespace rowtune
