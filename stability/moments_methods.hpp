#pragma once
// The methods of moments.hpp as templates over the type F and the policy M of the arithmetic.

#include "stability/moments.hpp"

namespace rowtune::stability {

template <class F>
struct MeanAndM2 {
  F mean;
  F m2;
};

template <class F, class M>
Sums<F> sums_of(const Summation& summation, RowView<F, M>& x, F shift, bool shifted) {
  return reduce(
      summation, x.size(), sums_empty<F>(),
      [&](Sums<F> s, std::int64_t i) { return sums_push<F, M>(s, shifted ? x[i] - shift : x[i]); },
      [](Sums<F> a, Sums<F> b) { return sums_merge(a, b); });
}

/// sum of squares - sum^2 / n.
template <class F, class M>
F m2_of_sums(Sums<F> s, std::int64_t n) {
  return s.squares - s.sum * M::quotient(s.sum, M::from_count(n));
}

template <class F, class M>
MeanAndM2<F> one_pass(const Summation& summation, RowView<F, M>& x) {
  const Sums<F> s = sums_of<F, M>(summation, x, F(0), false);
  return {M::quotient(s.sum, M::from_count(x.size())), m2_of_sums<F, M>(s, x.size())};
}

template <class F, class M>
MeanAndM2<F> shifted_one_pass(const Summation& summation, RowView<F, M>& x) {
  const F shift = x[0];
  const Sums<F> s = sums_of<F, M>(summation, x, shift, true);
  return {shift + M::quotient(s.sum, M::from_count(x.size())), m2_of_sums<F, M>(s, x.size())};
}

template <class F, class M>
MeanAndM2<F> two_pass(const Summation& summation, RowView<F, M>& x, bool corrected) {
  const auto add = [](F a, F b) { return a + b; };
  const F sum = reduce(
      summation, x.size(), F(0), [&](F s, std::int64_t i) { return s + x[i]; }, add);
  const F mean = M::quotient(sum, M::from_count(x.size()));
  if (!corrected) {
    const F m2 = reduce(
        summation, x.size(), F(0),
        [&](F s, std::int64_t i) {
          const F d = x[i] - mean;
          return M::fma(d, d, s);
        },
        add);
    return {mean, m2};
  }
  const Sums<F> s = sums_of<F, M>(summation, x, mean, true);
  return {mean + M::quotient(s.sum, M::from_count(x.size())), m2_of_sums<F, M>(s, x.size())};
}

template <class F, class M>
MeanAndM2<F> welford(const Summation& summation, RowView<F, M>& x) {
  const Moments<F> s = reduce(
      summation, x.size(), moments_empty<F>(),
      [&](Moments<F> state, std::int64_t i) { return moments_push<F, M>(state, x[i]); },
      [](Moments<F> a, Moments<F> b) { return moments_merge<F, M>(a, b); });
  return {s.mean, s.m2};
}

template <class F, class M>
MeanAndM2<F> moments_of(const MomentsChoice& choice, RowView<F, M>& x) {
  switch (choice.method) {
    case MomentsMethod::one_pass:
      return one_pass<F, M>(choice.summation, x);
    case MomentsMethod::shifted_one_pass:
      return shifted_one_pass<F, M>(choice.summation, x);
    case MomentsMethod::two_pass:
      return two_pass<F, M>(choice.summation, x, false);
    case MomentsMethod::corrected_two_pass:
      return two_pass<F, M>(choice.summation, x, true);
    case MomentsMethod::welford:
    case MomentsMethod::chan:
      break;
  }
  return welford<F, M>(choice.summation, x);
}

}  // namespace rowtune::stability
