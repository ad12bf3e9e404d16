#pragma once
// argmax and log-sum-exp of each row in one read: what greedy sampling over a vocabulary asks for. The output is a
// matrix of rows x 2 words of 32 bits: the index (int) and the log-sum-exp (float).
//
// The index is torch.argmax's: of the first largest element; the first NaN where there is one. The log-sum-exp is NaN
// if any element is, else +inf if any is, else -inf where all are. Neither index nor sum is lost in a merge: a NaN is
// carried in place of the maximum, and beats every number.
//
// A cached row is looked at twice (the maximum of a warp, then its sum and index); a row that is kept nowhere, once.

#include "rowtune/kernels.cuh"

namespace rowtune {

/// What some elements know: the largest (NaN above all), the index of its first occurrence, and the sum of exp(x -
/// best) where `best` is finite; otherwise the sum says nothing.
template <int Exp>
struct BestSumState {
  static constexpr int words = 3;
  static constexpr bool merges_at_once = false;
  static constexpr int nowhere = 0x7fffffff;  ///< the index of no element: loses every tie
  using Math = DeviceMath<Exp>;
  float best;
  float sum;
  int index;

  static ROWTUNE_DEVICE BestSumState empty() { return {-infinity(), 0.0f, nowhere}; }
  ROWTUNE_DEVICE unsigned word(int i) const {
    return i == 0 ? bits_of(best) : i == 1 ? bits_of(sum) : static_cast<unsigned>(index);
  }
  static ROWTUNE_DEVICE BestSumState of(const unsigned* w) {
    return {float_of(w[0]), float_of(w[1]), static_cast<int>(w[2])};
  }
  /// Whether (a, i) comes before (b, j): a total order, so that any order of merging finds the same element.
  static ROWTUNE_DEVICE bool precedes(float a, int i, float b, int j) {
    const bool a_is_nan = !(a == a), b_is_nan = !(b == b);
    if (a_is_nan != b_is_nan) return a_is_nan;
    if (!a_is_nan && a != b) return a > b;
    return i < j;
  }
  /// The sum relative to the best of a union; 0 where it says nothing, and for elements that are all -inf.
  ROWTUNE_DEVICE float sum_at(float best_of_all) const {
    if (best == best_of_all) return sum;
    return best < best_of_all ? sum * Math::exp(best - best_of_all) : 0.0f;
  }
  static ROWTUNE_DEVICE BestSumState merge(BestSumState a, BestSumState b) {
    const bool first = precedes(a.best, a.index, b.best, b.index);
    const float best = first ? a.best : b.best;
    return {best, a.sum_at(best) + b.sum_at(best), first ? a.index : b.index};
  }
  template <int Lanes>
  ROWTUNE_DEVICE BestSumState over_lanes() const {
    float top = best;
    int at = index;
#pragma unroll
    for (int d = Lanes / 2; d > 0; d /= 2) {
      const float other = shuffle_xor(top, d);
      const int other_at = shuffle_xor(at, d);
      if (precedes(other, other_at, top, at)) top = other, at = other_at;
    }
    return {top, lanes_sum<Lanes>(sum_at(top)), at};
  }
};

template <class K, bool Online>
struct ArgmaxLogSumExpOperation {
  static constexpr Fill fill = fill_minus_infinity;
  static constexpr int V = K::vector;
  using Math = DeviceMath<K::exp>;
  using State = BestSumState<K::exp>;
  using Known = State;

  /// A thread's vectors may be looked at in any order: the least column stays. `at` is a column that exists.
  template <class Index>
  static ROWTUNE_DEVICE void take(int& index, Index at) {
    if (at < index) index = static_cast<int>(at);
  }

  /// The first NaN of this thread's elements.
  template <class View>
  static ROWTUNE_DEVICE int first_nan(View& view) {
    int index = State::nowhere;
    view.each([&](const auto& x, const auto& at) {
#pragma unroll
      for (int j = static_cast<int>(sizeof(x) / sizeof(x[0])) - 1; j >= 0; --j) {
        if (!(x[j] == x[j]) && at.exists) take(index, at.first + j);
      }
    });
    return index;
  }

  template <class View, class Team>
  static ROWTUNE_DEVICE State partial(const RowArgs&, View& view, Team&) {
    State mine = State::empty();
    if constexpr (Online) {
      view.each([&](const auto& x, const auto& at) {
        constexpr int N = sizeof(x) / sizeof(x[0]);
        const float top = tree_max(x);
        if (top >= mine.best) {
          if (top > mine.best) mine.sum *= Math::exp(mine.best - top), mine.best = top, mine.index = State::nowhere;
#pragma unroll
          for (int j = N - 1; j >= 0; --j)
            if (x[j] == top && at.exists) take(mine.index, at.first + j);
        }
        const float origin = max_sum_origin<float, Math>(mine.best);
        float e[N];
#pragma unroll
        for (int j = 0; j < N; ++j) e[j] = Math::exp(x[j] - origin);
        mine.sum += tree_sum(e);
      });
    } else {
      mine.best = lanes_max<Team::lanes>(view.max());
      const float origin = max_sum_origin<float, Math>(mine.best);
      view.each([&](const auto& x, const auto& at) {
        constexpr int N = sizeof(x) / sizeof(x[0]);
        float e[N];
#pragma unroll
        for (int j = N - 1; j >= 0; --j) {
          e[j] = Math::exp(x[j] - origin);
          if (x[j] == mine.best && at.exists) take(mine.index, at.first + j);
        }
        mine.sum += tree_sum(e);
      });
    }
    // A sum that is no number has met a NaN or a +inf: only then is a further look worth its time.
    if (!(mine.sum == mine.sum)) {
      const int at = first_nan(view);
      if (at != State::nowhere)
        mine = {quotient(0.0f, 0.0f), 0.0f, at};
      else
        mine.sum = 0.0f;
    }
    return mine.template over_lanes<Team::lanes>();
  }

  static ROWTUNE_DEVICE Known known_of(const RowArgs&, State whole) { return whole; }

  template <class View, class Team>
  static ROWTUNE_DEVICE Known reduce(const RowArgs& a, View& view, Team& team) {
    return team.across(partial(a, view, team));
  }

  /// By one thread of the row.
  static ROWTUNE_DEVICE void store(const RowArgs& a, i64 row, const Known& whole) {
    const bool finite = whole.best - whole.best == 0.0f;
    unsigned* const out = static_cast<unsigned*>(a.output) + row * a.output_stride;
    global_store<keep>(out, static_cast<unsigned>(whole.index));
    global_store<keep>(out + 1, bits_of(finite ? whole.best + natural_log(whole.sum) : whole.best));
  }
};

template <class K, bool Online>
struct GivesRowResults<ArgmaxLogSumExpOperation<K, Online>> {
  static constexpr bool value = true;
};

}  // namespace rowtune
