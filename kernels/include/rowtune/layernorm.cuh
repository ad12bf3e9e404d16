#pragma once
// layernorm, with the variance by one pass, two passes, or Welford's moments with Chan's merge.
//
// Every operation is written once, over a view (where the row is kept) and a team (who shares it):
//   reduce(args, view, team)      what the whole team knows of the row
//   partial(args, view, team)     the part of that which one warp knows, and
//   known_of(args, whole)         what follows from all the parts: for launches that merge by themselves
//   apply(args, known, weights, n, place, x)   the thread's n-th vector, or edge, of inputs becomes outputs

#include "rowtune/teams.cuh"
#include "rowtune/views.cuh"

namespace rowtune {

/// y = (x - mean) * rstd * weight + bias, population variance.
template <class K>
struct LayerNormOperation {
  static constexpr Fill fill = fill_zero;
  static constexpr int V = K::vector;
  using State = MomentsState;

  struct Known {
    float mean;
    float rstd;
  };

  static ROWTUNE_DEVICE Known known_of(const RowArgs& a, float mean, float variance) {
    return {mean, reciprocal_sqrt(clamp_variance(variance) + a.eps)};
  }
  static ROWTUNE_DEVICE float columns(const RowArgs& a) {
    return static_cast<float>(K::cols > 0 ? static_cast<long long>(K::cols) : a.cols);
  }

  template <class View>
  static ROWTUNE_DEVICE float sum_of(View& view) {
    float sum = 0.0f;
    view.each([&](const auto& x, const auto&) { sum += tree_sum(x); });
    return sum;
  }
  /// Where the row is kept as floats, differences from the mean of the whole row replace the inputs, and are not
  /// computed again.
  template <class View>
  static constexpr bool keeps_differences = View::keeps_values&& K::variance == variance_twopass;

  template <class View>
  static ROWTUNE_DEVICE float squares_about(View& view, float mean) {
    SquareSum<V> sum;
    view.each([&](auto& x, const auto& at) {
      constexpr int N = sizeof(x) / sizeof(x[0]);
      const float center = at.exists ? mean : 0.0f;  // absent elements are 0, and no part of the sum
      float d[N];
#pragma unroll
      for (int j = 0; j < N; ++j) {
        d[j] = x[j] - center;
        if constexpr (keeps_differences<View>) x[j] = d[j];
      }
      sum.add(d);
    });
    return sum.total();
  }

  /// Count, mean and M2 of what the lanes of this warp hold: two looks at cached values, no division per element.
  template <class View, class Team>
  static ROWTUNE_DEVICE State partial(const RowArgs&, View& view, Team&) {
    const int count = view.count();
    // The shuffles are not in a branch: lanes of a warp may hold rows past the last one, which count nothing.
    const float sum = lanes_sum<Team::lanes>(sum_of(view));
    const float mean = count == 0 ? 0.0f : over_count(sum, static_cast<float>(count));
    return {{count, mean, lanes_sum<Team::lanes>(squares_about(view, mean))}};
  }

  template <class View, class Team>
  static ROWTUNE_DEVICE Known reduce(const RowArgs& a, View& view, Team& team) {
    const float n = columns(a);
    if constexpr (K::variance == variance_onepass) {
      float sum = 0.0f;
      SquareSum<V> squares;
      view.each([&](const auto& x, const auto&) {
        sum += tree_sum(x);
        squares.add(x);
      });
      const Sums<float> s = team.across(SumsState{{sum, squares.total()}}.template over_lanes<Team::lanes>()).sums;
      const float mean = over_count(s.sum, n);
      return known_of(a, mean, multiply_add(-mean, mean, over_count(s.squares, n)));
    } else if constexpr (K::variance == variance_twopass) {
      const float mean = over_count(team.across(SumState{lanes_sum<Team::lanes>(sum_of(view))}).sum, n);
      const float m2 = team.across(SumState{lanes_sum<Team::lanes>(squares_about(view, mean))}).sum;
      return known_of(a, mean, over_count(m2, n));
    } else {
      return known_of(a, team.across(partial(a, view, team)));
    }
  }
  static ROWTUNE_DEVICE Known known_of(const RowArgs& a, State whole) {
    return known_of(a, whole.value.mean, over_count(whole.value.m2, columns(a)));
  }

  template <class View>
  static ROWTUNE_DEVICE float difference(float x, const Known& known) {
    return keeps_differences<View> ? x : x - known.mean;
  }
  template <class View, class Weights, class At, int N>
  static ROWTUNE_DEVICE void apply(const RowArgs& a, const Known& known, const Weights& weights, int n, const At& at,
                                   float (&x)[N]) {
    float weight[N], bias[N];
    weights.get(a, n, at, weight, bias);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float normal = difference<View>(x[j], known) * known.rstd;
      const float scaled = K::weight ? normal * weight[j] : normal;
      x[j] = K::bias ? (K::weight ? multiply_add(normal, weight[j], bias[j]) : normal + bias[j]) : scaled;
    }
  }
};

}  // namespace rowtune
