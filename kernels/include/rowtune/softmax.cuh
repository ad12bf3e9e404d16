#pragma once
// softmax and log_softmax.
//
// Every operation is written once, over a view (where the row is kept) and a team (who shares it):
//   reduce(args, view, team)      what the whole team knows of the row
//   partial(args, view, team)     the part of that which one warp knows, and
//   known_of(args, whole)         what follows from all the parts: for launches that merge by themselves
//   apply(args, known, weights, n, place, x)   the thread's n-th vector, or edge, of inputs becomes outputs
//
// Methods, naive to best: without the max (unsafe: exp overflows), three passes (max, sum, output: two merges),
// online (one look keeps max and sum together), folded (the max of a warp first, then its sum: for cached rows, where
// a second look is free).

#include "rowtune/teams.cuh"
#include "rowtune/views.cuh"

namespace rowtune {

enum SoftmaxMethod { softmax_unsafe, softmax_threepass, softmax_online, softmax_folded };

/// softmax (exp(x - max) / sum) or, with Log, log_softmax ((x - max) - log(sum)).
template <class K, SoftmaxMethod Method, bool Log>
struct SoftmaxOperation {
  static constexpr Fill fill = fill_minus_infinity;
  using Math = DeviceMath<K::exp>;
  using State = MaxSumState<K::exp>;

  /// Where the row is kept as floats, the exponentials replace the inputs and are not computed again.
  template <class View>
  static constexpr bool keeps_exponentials = !Log && Method == softmax_folded && View::keeps_values;

  struct Known {
    float origin;  ///< subtracted before the exponential
    float scale;   ///< softmax: 1 / sum, times exp(own origin - max) where exponentials are kept; log_softmax: log(sum)
  };

  static ROWTUNE_DEVICE float exponential(float x, float origin) { return Math::exp(x - origin); }

  /// max and sum over this thread's elements, relative to the maximum of its lanes.
  template <bool Keep, class View, class Team>
  static ROWTUNE_DEVICE State fold(View& view, Team&) {
    const float max = lanes_max<Team::lanes>(view.max());
    const float origin = max_sum_origin<float, Math>(max);
    float sum = 0.0f;
    view.each([&](auto& x, const auto&) {
      constexpr int N = sizeof(x) / sizeof(x[0]);
      float e[N];
#pragma unroll
      for (int j = 0; j < N; ++j) {
        e[j] = exponential(x[j], origin);
        if constexpr (Keep) x[j] = e[j];
      }
      sum += tree_sum(e);
    });
    return {{max, lanes_sum<Team::lanes>(sum)}};
  }

  /// One look: the state of the elements so far, rescaled when a vector raises the maximum.
  template <class View, class Team>
  static ROWTUNE_DEVICE State online(View& view, Team&) {
    MaxSum<float> state = max_sum_empty<float, Math>();
    view.each([&](const auto& x, const auto&) {
      constexpr int N = sizeof(x) / sizeof(x[0]);
      const float max = larger(state.max, tree_max(x));
      const float origin = max_sum_origin<float, Math>(max);
      float e[N];
#pragma unroll
      for (int j = 0; j < N; ++j) e[j] = exponential(x[j], origin);
      state = {max, max_sum_at<float, Math>(state, max) + tree_sum(e)};
    });
    return State{state}.template over_lanes<Team::lanes>();
  }

  template <class View, class Team>
  static ROWTUNE_DEVICE State partial(const RowArgs&, View& view, Team& team) {
    if constexpr (Method == softmax_online)
      return online(view, team);
    else
      return fold<keeps_exponentials<View>>(view, team);
  }

  static ROWTUNE_DEVICE Known known_of(const RowArgs&, State whole) {
    const float max = whole.value.max;
    if constexpr (Log) return {max, natural_log(whole.value.sum)};
    return {max_sum_origin<float, Math>(max), reciprocal(whole.value.sum)};
  }

  template <class View, class Team>
  static ROWTUNE_DEVICE Known reduce(const RowArgs& a, View& view, Team& team) {
    if constexpr (Method == softmax_unsafe || Method == softmax_threepass) {
      float max = 0.0f;
      if constexpr (Method == softmax_threepass) {
        max = team.across(MaxState{lanes_max<Team::lanes>(view.max())}).max;
      }
      const float origin = max_sum_origin<float, Math>(max);
      float sum = 0.0f;
      view.each([&](const auto& x, const auto&) {
        constexpr int N = sizeof(x) / sizeof(x[0]);
        float e[N];
#pragma unroll
        for (int j = 0; j < N; ++j) e[j] = exponential(x[j], origin);
        sum += tree_sum(e);
      });
      sum = team.across(SumState{lanes_sum<Team::lanes>(sum)}).sum;
      return known_of(a, {{max, sum}});
    } else {
      const State mine = partial(a, view, team);
      const State whole = team.across(mine);
      Known known = known_of(a, whole);
      if constexpr (keeps_exponentials<View>)
        known.scale *= mine.value.max == whole.value.max ? 1.0f : Math::exp(mine.value.max - whole.value.max);
      return known;
    }
  }

  template <class View, class Weights, class At, int N>
  static ROWTUNE_DEVICE void apply(const RowArgs&, const Known& known, const Weights&, int, const At&, float (&x)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) {
      if constexpr (Log)
        x[j] = (x[j] - known.origin) - known.scale;
      else if constexpr (keeps_exponentials<View>)
        x[j] *= known.scale;
      else
        x[j] = exponential(x[j], known.origin) * known.scale;
    }
  }
};

}  // namespace rowtune
