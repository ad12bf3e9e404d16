#pragma once
// The operations: what is reduced over a row, and what each element becomes. Each is written once, over a view (where
// the row is kept) and a team (who shares it); see views.cuh and teams.cuh.
//
//   reduce(args, view, team)      what the whole team knows of the row
//   partial(args, view, team)     the part of that which one warp knows, and
//   known_of(args, whole)         what follows from all the parts: for launches that merge by themselves
//   apply(args, known, x, mask)   a vector of inputs becomes a vector of outputs
//
// softmax, naive to best: without the max (unsafe: exp overflows), three passes (max, sum, output: two merges),
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
  static constexpr int V = K::vector;
  using Math = DeviceMath<K::exp>;
  using State = MaxSumState<K::exp>;

  /// Where the row is kept as floats, the exponentials replace the inputs and are not computed again.
  template <class View>
  static constexpr bool keeps_exponentials = false;
  template <class Team>
  static constexpr bool keeps_exponentials<FloatView<K, Team, fill>> = !Log && Method == softmax_folded;

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
    view.each([&](float(&x)[V], const auto&) {
      float e[V];
#pragma unroll
      for (int j = 0; j < V; ++j) {
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
    view.each([&](const float(&x)[V], const auto&) {
      const float max = larger(state.max, tree_max(x));
      const float origin = max_sum_origin<float, Math>(max);
      float e[V];
#pragma unroll
      for (int j = 0; j < V; ++j) e[j] = exponential(x[j], origin);
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
      view.each([&](const float(&x)[V], const auto&) {
        float e[V];
#pragma unroll
        for (int j = 0; j < V; ++j) e[j] = exponential(x[j], origin);
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

  template <class View, class Mask>
  static ROWTUNE_DEVICE void apply(const RowArgs&, const Known& known, float (&x)[V], const Mask&) {
#pragma unroll
    for (int j = 0; j < V; ++j) {
      if constexpr (Log)
        x[j] = (x[j] - known.origin) - known.scale;
      else if constexpr (keeps_exponentials<View>)
        x[j] *= known.scale;
      else
        x[j] = exponential(x[j], known.origin) * known.scale;
    }
  }
};

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
    view.each([&](const float(&x)[V], const auto&) { sum += tree_sum(x); });
    return sum;
  }
  template <class View>
  static ROWTUNE_DEVICE float squares_about(View& view, float mean) {
    float sum = 0.0f;
    view.each([&](const float(&x)[V], const auto& mask) {
      float d[V];
#pragma unroll
      for (int j = 0; j < V; ++j) d[j] = mask.valid(j) ? (x[j] - mean) * (x[j] - mean) : 0.0f;
      sum += tree_sum(d);
    });
    return sum;
  }

  /// Count, mean and M2 of what the lanes of this warp hold: two looks at cached values, no division per element.
  template <class View, class Team>
  static ROWTUNE_DEVICE State partial(const RowArgs&, View& view, Team&) {
    int count = 0;
    float sum = 0.0f;
    view.each([&](const float(&x)[V], const auto& mask) {
#pragma unroll
      for (int j = 0; j < V; ++j) count += mask.valid(j) ? 1 : 0;
      sum += tree_sum(x);
    });
    count = lanes_sum<Team::lanes>(count);
    const float mean = count == 0 ? 0.0f : quotient(lanes_sum<Team::lanes>(sum), static_cast<float>(count));
    return {{count, mean, lanes_sum<Team::lanes>(squares_about(view, mean))}};
  }

  template <class View, class Team>
  static ROWTUNE_DEVICE Known reduce(const RowArgs& a, View& view, Team& team) {
    const float n = columns(a);
    if constexpr (K::variance == variance_onepass) {
      Sums<float> s = sums_empty<float>();
      view.each([&](const float(&x)[V], const auto&) {
        float squares[V];
#pragma unroll
        for (int j = 0; j < V; ++j) squares[j] = x[j] * x[j];
        s = sums_merge(s, {tree_sum(x), tree_sum(squares)});
      });
      s = team.across(SumsState{s}.template over_lanes<Team::lanes>()).sums;
      const float mean = quotient(s.sum, n);
      return known_of(a, mean, multiply_add(-mean, mean, quotient(s.squares, n)));
    } else if constexpr (K::variance == variance_twopass) {
      const float mean = quotient(team.across(SumState{lanes_sum<Team::lanes>(sum_of(view))}).sum, n);
      const float m2 = team.across(SumState{lanes_sum<Team::lanes>(squares_about(view, mean))}).sum;
      return known_of(a, mean, quotient(m2, n));
    } else {
      return known_of(a, team.across(partial(a, view, team)));
    }
  }
  static ROWTUNE_DEVICE Known known_of(const RowArgs& a, State whole) {
    return known_of(a, whole.value.mean, quotient(whole.value.m2, columns(a)));
  }

  template <class View, class Mask>
  static ROWTUNE_DEVICE void apply(const RowArgs& a, const Known& known, float (&x)[V], const Mask& mask) {
    float weight[V], bias[V];
    if constexpr (K::weight) read_weights<K>(a.weight, mask, weight);
    if constexpr (K::bias) read_weights<K>(a.bias, mask, bias);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float normal = (x[j] - known.mean) * known.rstd;
      const float scaled = K::weight ? normal * (weight[j] + a.weight_offset) : normal;
      x[j] = K::bias ? (K::weight ? multiply_add(normal, weight[j] + a.weight_offset, bias[j]) : normal + bias[j])
                     : scaled;
    }
  }
};

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
    float sum = 0.0f;
    view.each([&](const float(&x)[V], const auto&) {
      float squares[V];
#pragma unroll
      for (int j = 0; j < V; ++j) squares[j] = x[j] * x[j];
      sum += tree_sum(squares);
    });
    return {lanes_sum<Team::lanes>(sum)};
  }
  static ROWTUNE_DEVICE Known known_of(const RowArgs& a, State whole) {
    const float n = static_cast<float>(K::cols > 0 ? static_cast<long long>(K::cols) : a.cols);
    return {reciprocal_sqrt(quotient(whole.sum, n) + a.eps)};
  }
  template <class View, class Team>
  static ROWTUNE_DEVICE Known reduce(const RowArgs& a, View& view, Team& team) {
    return known_of(a, team.across(partial(a, view, team)));
  }

  template <class View, class Mask>
  static ROWTUNE_DEVICE void apply(const RowArgs& a, const Known& known, float (&x)[V], const Mask& mask) {
    float weight[V];
    if constexpr (K::weight) read_weights<K>(a.weight, mask, weight);
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float normal = x[j] * known.rstd;
      x[j] = K::weight ? normal * (weight[j] + a.weight_offset) : normal;
    }
  }
};

}  // namespace rowtune
