#pragma once
// rmsnorm and fused_add_rmsnorm.
//
// Every operation is written once, over a view (where the row is kept) and a team (who shares it):
//   reduce(args, view, team)      what the whole team knows of the row
//   partial(args, view, team)     the part of that which one warp knows, and
//   known_of(args, whole)         what follows from all the parts: for launches that merge by themselves
//   apply(args, known, weights, n, place, x)   the thread's n-th vector, or edge, of inputs becomes outputs

#include "rowtune/teams.cuh"
#include "rowtune/views.cuh"

namespace rowtune {

/// y = x * rsqrt(mean(x^2) + eps) * weight; with K::adds_residual, x is the rounded sum of hidden and residual.
template <class K>
struct RmsNormOperation {
  static constexpr Fill fill = fill_zero;
  static constexpr int V = K::vector;
  using State = SumState;

  struct Known {
    float rstd;
  };

  template <class View, class Team>
  static ROWTUNE_DEVICE State partial(const RowArgs&, View& view, Team&) {
    SquareSum<V> sum;
    view.each([&](const auto& x, const auto&) { sum.add(x); });
    return {lanes_sum<Team::lanes>(sum.total())};
  }
  static ROWTUNE_DEVICE Known known_of(const RowArgs& a, State whole) {
    const float n = static_cast<float>(K::cols > 0 ? static_cast<long long>(K::cols) : a.cols);
    return {reciprocal_sqrt(over_count(whole.sum, n) + a.eps)};
  }
  template <class View, class Team>
  static ROWTUNE_DEVICE Known reduce(const RowArgs& a, View& view, Team& team) {
    return known_of(a, team.across(partial(a, view, team)));
  }

  template <class View, class Weights, class At, int N>
  static ROWTUNE_DEVICE void apply(const RowArgs& a, const Known& known, const Weights& weights, int n, const At& at,
                                   float (&x)[N]) {
    float weight[N], none[N];
    weights.get(a, n, at, weight, none);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float normal = x[j] * known.rstd;
      x[j] = K::weight ? normal * weight[j] : normal;
    }
  }
};

}  // namespace rowtune
