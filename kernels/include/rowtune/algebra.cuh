#pragma once
// The merge rules of row reductions: (max, sum) of online softmax, (count, mean, M2) of Welford and Chan, and the plain
// sums. One header for the device (NVRTC, nvcc), the host and the stability study, so that a fix reaches all three.
//
// F is the type of the arithmetic: float on a GPU; float, double or an emulated half in the study.
// M says how F computes: static F exp(F), F fma(F, F, F), F max(F, F) (a NaN argument is ignored, as fmaxf does),
// F quotient(F, F), F infinity(), F from_count(long long). Nothing else is asked of F but + - * < == on values.
//
// Sources: Milakov & Gimelshein 2018 (online softmax); Welford 1962; Chan, Golub & LeVeque 1983 (merge).
// C++17, no standard library.

#ifndef ROWTUNE_FUNCTION
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define ROWTUNE_FUNCTION __host__ __device__ __forceinline__
#else
#define ROWTUNE_FUNCTION inline
#endif
#endif

namespace rowtune {

// ---------------------------------------------------------------------------------------------------- (max, sum)

/// State of a softmax over some elements: sum = sum of exp(x - max). No element at all is (-inf, 0).
/// A row with a NaN or +inf ends with a NaN sum: +inf and NaN are lifted to a NaN sum, and no merge can lose it.
template <class F>
struct MaxSum {
  F max;
  F sum;
};

template <class F, class M>
ROWTUNE_FUNCTION MaxSum<F> max_sum_empty() {
  return {-M::infinity(), F(0)};
}

/// One element: x -> (x, 1), -inf -> (-inf, 0), +inf -> (+inf, NaN), NaN -> (-inf, NaN).
template <class F, class M>
ROWTUNE_FUNCTION MaxSum<F> max_sum_lift(F x) {
  if (x == -M::infinity()) return {x, F(0)};
  const F not_a_number = x - x;  // 0 for a finite x
  if (!(not_a_number == F(0))) return {M::max(x, -M::infinity()), not_a_number};
  return {x, F(1)};
}

/// exp(x - max) for x <= max, with the two places where a plain subtraction gives NaN put right: an empty state
/// (max = -inf) has nothing to scale, so its "origin" is 0 and exp(-inf) = 0 keeps -inf entries at exactly 0.
template <class F, class M>
ROWTUNE_FUNCTION F max_sum_origin(F max) {
  return max == -M::infinity() ? F(0) : max;
}

/// Union of two disjoint sets of elements. Commutative bit for bit. The side whose max is the merged max is scaled by
/// 1, not by exp(0), and never by 0: zeroing a state whose max is -inf would lose the NaN of [-inf, NaN].
template <class F, class M>
ROWTUNE_FUNCTION MaxSum<F> max_sum_merge(MaxSum<F> a, MaxSum<F> b) {
  const bool a_is_big = b.max < a.max;
  const MaxSum<F> big = a_is_big ? a : b;
  const MaxSum<F> small = a_is_big ? b : a;
  if (small.max == big.max) return {big.max, small.sum + big.sum};
  return {big.max, M::fma(small.sum, M::exp(small.max - big.max), big.sum)};
}

/// The sum of a state, scaled to a max that is at least its own: one side of an n-ary merge (the maximum of all first,
/// then the sum of these).
template <class F, class M>
ROWTUNE_FUNCTION F max_sum_at(MaxSum<F> state, F max) {
  return state.max == max ? state.sum : state.sum * M::exp(state.max - max);
}

/// log(sum of exp(x)): NaN if any NaN, else +inf if any +inf, else -inf if there is nothing above -inf.
/// `log` is a function of F. A +inf is told from a NaN by the max, which ignores NaN: so `saw_nan` must be carried
/// beside the state where both can occur; see log_sum_exp in the kernels.
template <class F, class M, class Log>
ROWTUNE_FUNCTION F max_sum_log(MaxSum<F> state, bool saw_nan, Log log) {
  if (saw_nan) return state.sum + (M::infinity() - M::infinity());
  if (state.max == M::infinity() || state.max == -M::infinity()) return state.max;
  return state.max + log(state.sum);
}

// --------------------------------------------------------------------------------------------- (count, mean, M2)

/// State of a variance: M2 = sum of (x - mean)^2. The count is an integer (a float count sticks at 2^24).
template <class F>
struct Moments {
  int count;
  F mean;
  F m2;
};

template <class F>
ROWTUNE_FUNCTION Moments<F> moments_empty() {
  return {0, F(0), F(0)};
}

/// Welford's update by one element.
template <class F, class M>
ROWTUNE_FUNCTION Moments<F> moments_push(Moments<F> s, F x) {
  const int count = s.count + 1;
  const F delta = x - s.mean;
  const F mean = s.mean + M::quotient(delta, M::from_count(count));
  return {count, mean, M::fma(delta, x - mean, s.m2)};
}

/// Chan's merge. With a count of 0 on one side the other is returned untouched. Not commutative bit for bit: merge in
/// a fixed order, or broadcast one lane's result.
template <class F, class M>
ROWTUNE_FUNCTION Moments<F> moments_merge(Moments<F> a, Moments<F> b) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  const int count = a.count + b.count;
  const F delta = b.mean - a.mean;
  const F share = M::quotient(M::from_count(b.count), M::from_count(count));  // of b in the union
  const F mean = M::fma(delta, share, a.mean);
  const F m2 = a.m2 + b.m2;
  return {count, mean, M::fma(delta * delta, share * M::from_count(a.count), m2)};
}

/// M2 of a state about another mean, that of the union: one side of an n-ary merge (count and mean of the union first,
/// then the sum of these; Chan, Golub & LeVeque 1983, for any number of parts).
template <class F, class M>
ROWTUNE_FUNCTION F moments_about(Moments<F> state, F mean) {
  const F delta = state.mean - mean;
  return M::fma(delta * delta, M::from_count(state.count), state.m2);
}

/// The variance a kernel uses is never negative; `v < 0 ? 0 : v` keeps a NaN.
template <class F>
ROWTUNE_FUNCTION F clamp_variance(F v) {
  return v < F(0) ? F(0) : v;
}

// ------------------------------------------------------------------------------------------------------- sums

/// One-pass variance's state: sum and sum of squares (cancels when the mean is large: kept as the form to warn of).
template <class F>
struct Sums {
  F sum;
  F squares;
};

template <class F>
ROWTUNE_FUNCTION Sums<F> sums_empty() {
  return {F(0), F(0)};
}

template <class F, class M>
ROWTUNE_FUNCTION Sums<F> sums_push(Sums<F> s, F x) {
  return {s.sum + x, M::fma(x, x, s.squares)};
}

template <class F>
ROWTUNE_FUNCTION Sums<F> sums_merge(Sums<F> a, Sums<F> b) {
  return {a.sum + b.sum, a.squares + b.squares};
}

}  // namespace rowtune
