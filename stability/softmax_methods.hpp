#pragma once
// The methods of softmax.hpp as templates over the type F and the policy M of the arithmetic.

#include "stability/softmax.hpp"

namespace rowtune::stability {

/// (max, sum) with the number of times that a sum was scaled on the way of the unluckiest element.
template <class F>
struct CountedMaxSum {
  MaxSum<F> value;
  int rescales = 0;
};

template <class F, class M>
CountedMaxSum<F> merge_counted(const CountedMaxSum<F>& a, const CountedMaxSum<F>& b) {
  const bool scales_a = a.value.max < b.value.max && !(a.value.sum == F(0));
  const bool scales_b = b.value.max < a.value.max && !(b.value.sum == F(0));
  return {max_sum_merge<F, M>(a.value, b.value),
          std::max(a.rescales + (scales_a ? 1 : 0), b.rescales + (scales_b ? 1 : 0))};
}

/// The n-ary merge over lanes: the maximum of all, each sum scaled to it once, then the tree of additions.
template <class F, class M>
CountedMaxSum<F> merge_to_common_max(const std::vector<CountedMaxSum<F>>& lanes) {
  CountedMaxSum<F> result{max_sum_empty<F, M>(), 0};
  for (const CountedMaxSum<F>& lane : lanes) result.value.max = M::max(result.value.max, lane.value.max);
  std::vector<F> sums;
  for (const CountedMaxSum<F>& lane : lanes) {
    sums.push_back(max_sum_at<F, M>(lane.value, result.value.max));
    const int scaled = lane.value.max == result.value.max ? 0 : 1;
    result.rescales = std::max(result.rescales, lane.rescales + scaled);
  }
  result.value.sum = merge_lanes(sums, [](F a, F b) { return a + b; });
  return result;
}

template <class F, class M>
CountedMaxSum<F> online_state(const Summation& summation, RowView<F, M>& x) {
  const CountedMaxSum<F> empty{max_sum_empty<F, M>(), 0};
  const auto push = [&](const CountedMaxSum<F>& s, std::int64_t i) {
    return merge_counted<F, M>(s, {max_sum_lift<F, M>(x[i]), 0});
  };
  if (summation.order == Order::lanes && x.size() > 0)
    return merge_to_common_max<F, M>(fill_lanes(summation.lanes, x.size(), empty, push));
  return reduce(summation, x.size(), empty, push, merge_counted<F, M>);
}

/// Maximum and sum of exp(x - max) of elements first .. first + n - 1, in two passes.
template <class F, class M>
MaxSum<F> two_sweeps(const Summation& summation, RowView<F, M>& x, std::int64_t first, std::int64_t n) {
  F max = -M::infinity();
  for (std::int64_t i = 0; i < n; ++i) max = M::max(max, x[first + i]);
  const F origin = max_sum_origin<F, M>(max);
  const F sum = reduce(
      summation, n, F(0), [&](F s, std::int64_t i) { return s + M::exp(x[first + i] - origin); },
      [](F a, F b) { return a + b; });
  return {max, sum};
}

template <class F, class M>
CountedMaxSum<F> split_state(const SoftmaxChoice& choice, RowView<F, M>& x) {
  CountedMaxSum<F> state{max_sum_empty<F, M>(), 0};
  const std::int64_t n = x.size();
  for (int part = 0; part < choice.parts; ++part) {
    const std::int64_t first = n * part / choice.parts, last = n * (part + 1) / choice.parts;
    if (first == last) continue;
    state = merge_counted<F, M>(state, {two_sweeps<F, M>(choice.summation, x, first, last - first), 0});
  }
  return state;
}

template <class F, class M>
CountedMaxSum<F> softmax_state(const SoftmaxChoice& choice, RowView<F, M>& x) {
  switch (choice.method) {
    case SoftmaxMethod::unsafe: {
      const F sum = reduce(
          choice.summation, x.size(), F(0), [&](F s, std::int64_t i) { return s + M::exp(x[i]); },
          [](F a, F b) { return a + b; });
      return {{F(0), sum}, 0};
    }
    case SoftmaxMethod::three_pass:
      return {two_sweeps<F, M>(choice.summation, x, 0, x.size()), 0};
    case SoftmaxMethod::online:
      return online_state<F, M>(choice.summation, x);
    case SoftmaxMethod::split:
      break;
  }
  return split_state<F, M>(choice, x);
}

template <class F, class M>
F softmax_output(SoftmaxMethod method, MaxSum<F> s, F x) {
  if (method == SoftmaxMethod::unsafe) return M::quotient(M::exp(x), s.sum);
  return M::quotient(M::exp(x - max_sum_origin<F, M>(s.max)), s.sum);
}

template <class F, class M>
F log_softmax_output(const SoftmaxChoice& choice, MaxSum<F> s, F x) {
  if (choice.log_form == LogForm::of_ratio) return M::log(softmax_output<F, M>(choice.method, s, x));
  if (choice.method == SoftmaxMethod::unsafe) return x - M::log(s.sum);
  const F origin = max_sum_origin<F, M>(s.max);
  if (choice.log_form == LogForm::folded) return x - (origin + M::log(s.sum));
  return (x - origin) - M::log(s.sum);
}

template <class F, class M>
F log_sum_exp_of(SoftmaxMethod method, MaxSum<F> s, bool saw_nan) {
  if (method == SoftmaxMethod::unsafe) return M::log(s.sum);
  return max_sum_log<F, M>(s, saw_nan, [](F v) { return M::log(v); });
}

}  // namespace rowtune::stability
