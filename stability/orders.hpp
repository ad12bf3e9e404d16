#pragma once
// The orders in which hardware and libraries sum. They matter more than the formula: the error of a sum grows with
// its depth, the number of additions that the unluckiest element goes through.

#include <cstdint>
#include <string>
#include <vector>

namespace rowtune::stability {

enum class Order {
  sequential,  ///< one accumulator from left to right; depth n
  lanes,    ///< accumulator i takes elements i, i + lanes, ...; then a tree over each warp of 32, then over the warps
  pairwise  ///< halves of halves down to single elements; depth log2 n
};

struct Summation {
  Order order = Order::sequential;
  int lanes = 1;  ///< a power of two; order lanes only
  bool operator==(const Summation&) const = default;
};

std::string to_string(const Summation& summation);  ///< `sequential`, `lanes256`, `pairwise`

/// Depth h of a sum of n elements in this order: ceil(n / lanes) + log2 lanes; sequential n; pairwise ceil(log2 n) + 1.
/// An element goes through at most h - 1 additions.
double depth_of(const Summation& summation, std::int64_t n);
int ceil_log2(std::int64_t n);  ///< 0 for n <= 1

/// Folds n elements: `push(state, i)` adds element i, `merge(a, b)` joins neighbours, a on the left.
template <class State, class Push, class Merge>
State reduce(const Summation& summation, std::int64_t n, const State& empty, Push push, Merge merge);

namespace detail {

/// Pairs at distance width/2, width/4, ..., 1 among `width` states: what xor-shuffles give lane 0.
template <class State, class Merge>
State tree(State* states, int width, Merge& merge) {
  for (int distance = width / 2; distance > 0; distance /= 2)
    for (int i = 0; i < distance; ++i) states[i] = merge(states[i], states[i + distance]);
  return states[0];
}

template <class State, class Push, class Merge>
State halves(std::int64_t first, std::int64_t n, const State& empty, Push& push, Merge& merge) {
  if (n == 1) return push(empty, first);
  std::int64_t left = 1;  // the largest power of two below n: depth ceil(log2 n)
  while (2 * left < n) left *= 2;
  const State a = halves(first, left, empty, push, merge);
  return merge(a, halves(first + left, n - left, empty, push, merge));
}

}  // namespace detail

/// The tree over lanes of the order `lanes`: each warp of 32 first, then the warps.
template <class State, class Merge>
State merge_lanes(std::vector<State>& states, Merge merge) {
  const int lanes = static_cast<int>(states.size());
  const int width = lanes < 32 ? lanes : 32;
  std::vector<State> warps;
  for (int first = 0; first < lanes; first += width) warps.push_back(detail::tree(states.data() + first, width, merge));
  return detail::tree(warps.data(), static_cast<int>(warps.size()), merge);
}

/// The lanes' own sums, before the tree.
template <class State, class Push>
std::vector<State> fill_lanes(int lanes, std::int64_t n, const State& empty, Push push) {
  std::vector<State> states(static_cast<std::size_t>(lanes), empty);
  for (std::int64_t first = 0; first < n; first += lanes) {
    const std::int64_t count = n - first < lanes ? n - first : lanes;
    for (std::int64_t lane = 0; lane < count; ++lane)
      states[static_cast<std::size_t>(lane)] = push(states[static_cast<std::size_t>(lane)], first + lane);
  }
  return states;
}

template <class State, class Push, class Merge>
State reduce(const Summation& summation, std::int64_t n, const State& empty, Push push, Merge merge) {
  if (n == 0) return empty;
  if (summation.order == Order::pairwise) return detail::halves(std::int64_t{0}, n, empty, push, merge);
  if (summation.order == Order::lanes) {
    std::vector<State> states = fill_lanes(summation.lanes, n, empty, push);
    return merge_lanes(states, merge);
  }
  State state = empty;
  for (std::int64_t i = 0; i < n; ++i) state = push(state, i);
  return state;
}

}  // namespace rowtune::stability
