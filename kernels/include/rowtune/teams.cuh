#pragma once
// Teams: the threads that share a row. A team numbers its threads (rank, size), and merges a state over all of them;
// every member ends with the same bits, merged in a fixed order. Lanes of a warp, a block, a cluster of blocks, or
// several blocks of one launch that exchange through the L2.

#include "rowtune/args.cuh"
#include "rowtune/exchange.cuh"
#include "rowtune/states.cuh"

namespace rowtune {

/// Several rows per warp: `Lanes` neighbouring lanes share a row.
template <class K>
struct LanesTeam {
  static constexpr int lanes = 32 / K::rows_per_warp;
  static constexpr int size = lanes;
  ROWTUNE_DEVICE int rank() const { return thread_index() % lanes; }
  template <class State>
  ROWTUNE_DEVICE State across(State warp_state) {
    return warp_state;
  }
};

ROWTUNE_FUNCTION constexpr int power_of_two_at_least(int n) {
  int p = 1;
  while (p < n) p *= 2;
  return p;
}

/// Words between two sets of `Count` states in shared memory: each set begins at 16 bytes.
ROWTUNE_FUNCTION constexpr int words_of_states(int count) { return (count * exchange_words + 3) / 4 * 4; }
/// Two sets of `Count` states, used in turn, so that one barrier a merge is enough.
template <int Count, int Tag>
ROWTUNE_DEVICE float* shared_states(int round) {
  constexpr int words = words_of_states(Count);
  return reinterpret_cast<float*>(shared_array<Words4, 2 * words / 4, Tag>()) + (round & 1) * words;
}

/// Words in shared memory, by the widest accesses that their number allows; `p` is aligned for these.
template <int N>
ROWTUNE_DEVICE void load_shared_words(const float* p, unsigned (&w)[N]) {
#pragma unroll
  for (int i = 0; i < N; i += N % 4 == 0 ? 4 : N % 2 == 0 ? 2 : 1) {
    if constexpr (N % 4 == 0) {
      const Words4 four = shared_load(reinterpret_cast<const Words4*>(p + i));
#pragma unroll
      for (int j = 0; j < 4; ++j) w[i + j] = four.w[j];
    } else if constexpr (N % 2 == 0) {
      const Words2 two = shared_load(reinterpret_cast<const Words2*>(p + i));
      w[i] = two.w[0];
      w[i + 1] = two.w[1];
    } else {
      w[i] = bits_of(shared_load(p + i));
    }
  }
}

/// States that a lane merges by itself, before the lanes do: a shuffle takes as long as several additions.
template <class State>
ROWTUNE_FUNCTION constexpr int states_of_lane(int count) {
  if (!State::merges_at_once) return 1;
  if (count <= 8) return count;
  return count % 8 == 0 && count <= 16 ? 8 : count % 4 == 0 ? 4 : count % 2 == 0 ? 2 : 1;
}
/// Merges the first `Count` of the states that lie in shared memory; all lanes of the calling warp take part.
template <class State, int Count>
ROWTUNE_DEVICE State merge_shared(const float* words) {
  constexpr int each = states_of_lane<State>(Count);
  constexpr int width = power_of_two_at_least(Count / each);
  const int from = thread_index() % 32 % width * each;
  State state = State::empty();
  if (from < Count) {
    unsigned w[each * State::words];
    load_shared_words(words + from * State::words, w);
    State states[each];
#pragma unroll
    for (int i = 0; i < each; ++i) states[i] = State::of(w + i * State::words);
#pragma unroll
    for (int d = power_of_two_at_least(each) / 2; d > 0; d /= 2) {
#pragma unroll
      for (int i = 0; i < d; ++i)
        if (i + d < each) states[i] = State::merge(states[i], states[i + d]);
    }
    state = states[0];
  }
  return state.template over_lanes<width>();
}

/// One block per row.
template <class K>
struct BlockTeam {
  static constexpr int lanes = 32;
  static constexpr int size = K::block;
  static constexpr int warps = K::block / 32;
  int round = 0;  ///< merges so far

  ROWTUNE_DEVICE int rank() const { return thread_index(); }
  template <class State>
  ROWTUNE_DEVICE State across(State warp_state) {
    if constexpr (warps == 1) return warp_state;
    float* const words = shared_states<warps, tag_block_words>(round);
    ++round;
    if (thread_index() % 32 == 0) {
#pragma unroll
      for (int i = 0; i < State::words; ++i)
        shared_store(words + thread_index() / 32 * State::words + i, float_of(warp_state.word(i)));
    }
    block_barrier();
    return merge_shared<State, warps>(words);
  }
};

/// A cluster of K::split blocks per row (sm_90 and up): each block pushes its state into every peer's shared memory.
template <class K>
struct ClusterTeam {
  static constexpr int lanes = 32;
  static constexpr int size = K::block * K::split;
  BlockTeam<K> block;
  int round = 0;

  /// Every block of the cluster has begun: only then may a peer store into its shared memory.
  ROWTUNE_DEVICE ClusterTeam() { cluster_arrive(); }
  ROWTUNE_DEVICE int rank() const { return cluster_rank() * K::block + thread_index(); }
  template <class State>
  ROWTUNE_DEVICE State across(State warp_state) {
    const State mine = block.across(warp_state);
    float* const words = shared_states<K::split, tag_cluster_words>(round);
    if (round == 0) cluster_wait();  // of the constructor's arrival
    ++round;
    if (thread_index() < K::split) {
#pragma unroll
      for (int i = 0; i < State::words; ++i)
        cluster_store(words + cluster_rank() * State::words + i, thread_index(), float_of(mine.word(i)));
    }
    cluster_arrive();
    cluster_wait();
    return merge_shared<State, K::split>(words);
  }
  /// A kernel without a row still has to meet the arrival of the constructor.
  ROWTUNE_DEVICE void leave() {
    if (round == 0) cluster_wait();
  }
};

/// K::split blocks of one launch per row, all resident; see exchange.cuh.
template <class K>
struct SplitTeam {
  static constexpr int lanes = 32;
  static constexpr int size = K::block * K::split;
  BlockTeam<K> block;
  Exchange exchange;
  i64 rows;
  i64 row = 0;
  int stage = 0;  ///< merges of this row so far: each has slots of its own
  int round = 0;

  ROWTUNE_DEVICE SplitTeam(void* workspace, i64 all_rows) : exchange(workspace), rows(all_rows) {}
  ROWTUNE_DEVICE void begin(i64 next_row) {
    row = next_row;
    stage = 0;
  }
  ROWTUNE_DEVICE int part() const { return static_cast<int>(block_index() % K::split); }
  ROWTUNE_DEVICE int rank() const { return part() * K::block + thread_index(); }
  template <class State>
  ROWTUNE_DEVICE State across(State warp_state) {
    const State mine = block.across(warp_state);
    if constexpr (K::split == 1) return mine;
    u64* const slots = exchange.slots((stage * rows + row) * K::split * exchange_words);
    ++stage;
    float* const merged = shared_array<float, 2 * exchange_words, tag_exchange_words>() + (round & 1) * exchange_words;
    ++round;
    if (thread_index() == 0) {
#pragma unroll
      for (int i = 0; i < State::words; ++i) exchange.put(slots + part() * State::words + i, mine.word(i));
    }
    if (thread_index() < 32) {
      constexpr int each = (K::split + 31) / 32;  // slots of a lane
      unsigned seen[each][State::words];
      exchange.get(slots, thread_index(), 32, K::split, seen);
      State state = State::empty();
#pragma unroll
      for (int i = 0; i < each; ++i)
        if (thread_index() + 32 * i < K::split) state = State::merge(state, State::of(seen[i]));
      state = state.template over_lanes<32>();
      if constexpr (BlockTeam<K>::warps == 1) return state;
      if (thread_index() == 0) {
#pragma unroll
        for (int i = 0; i < State::words; ++i) shared_store(merged + i, float_of(state.word(i)));
      }
    }
    block_barrier();
    unsigned w[State::words];
#pragma unroll
    for (int i = 0; i < State::words; ++i) w[i] = bits_of(shared_load(merged + i));
    return State::of(w);
  }
};

}  // namespace rowtune
