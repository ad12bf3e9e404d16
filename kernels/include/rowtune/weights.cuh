#pragma once
// Weights and biases of the norms: one array of a row's length for all rows. In a ragged matrix rows begin at other
// places behind a vector boundary than these arrays do, so a vector of theirs is put together from two aligned ones.
// Where they wait while a row is reduced: nowhere, in registers, or in shared memory.

#include "rowtune/rows.cuh"

namespace rowtune {

/// The first `count` (0 to V - 1) elements of an aligned vector, 0 behind them.
template <class T, int V, int H>
ROWTUNE_DEVICE Vec<T, V> read_start(const char* p, int count) {
  Vec<T, V> v = filled_vector<T, V, fill_zero>();
  const int bytes = count * T::bytes;
  if constexpr (V * T::bytes == 16) {
    if ((bytes & 8) != 0) {
      const Words2 two = global_load<H>(reinterpret_cast<const Words2*>(p));
      set_word(v.words, 0, two.w[0]);
      set_word(v.words, 1, two.w[1]);
    }
  }
  if constexpr (V * T::bytes >= 8) {
    if ((bytes & 4) != 0) {
      const unsigned one = global_load<H>(reinterpret_cast<const unsigned*>(p + (bytes & 8)));
#pragma unroll
      for (int i = 0; i < words_of_vector<T, V>(); i += 2)
        if ((bytes & 8) / 4 == i) set_word(v.words, i, one);
    }
  }
  if constexpr (T::bytes == 2) {
    if ((bytes & 2) != 0) {
      const unsigned half = global_load<H>(reinterpret_cast<const unsigned short*>(p + bytes - 2));
#pragma unroll
      for (int i = 0; i < words_of_vector<T, V>(); ++i)
        if (bytes / 4 == i) set_word(v.words, i, half);
    }
  }
  return v;
}

/// A vector that begins `elements` (0 to V - 1) behind the start of the first of two neighbours.
template <class T, int V>
ROWTUNE_DEVICE Vec<T, V> shifted(const Vec<T, V>& a, const Vec<T, V>& b, int elements) {
  constexpr int count = words_of_vector<T, V>();
  unsigned w[2 * count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    w[i] = word_of(a.words, i);
    w[count + i] = word_of(b.words, i);
  }
  const int words = elements * T::bytes / 4;
#pragma unroll
  for (int d = count / 2; d > 0; d /= 2) {
    if ((words & d) != 0) {
#pragma unroll
      for (int i = 0; i + d < 2 * count; ++i) w[i] = w[i + d];
    }
  }
  Vec<T, V> v;
#pragma unroll
  for (int i = 0; i < count; ++i)
    set_word(v.words, i, T::bytes == 4 ? w[i] : funnel_shift(w[i], w[i + 1], (elements & 1) * 16));
  return v;
}

/// Of weights that ragged rows find in aligned vectors (read_weights): the last, if it is not whole.
template <class K>
ROWTUNE_DEVICE Vec<typename K::Element, K::vector> last_weights(const void* weights, i64 cols) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  if constexpr (K::ragged && V > 1) {
    const int rest = static_cast<int>(cols % V);
    if (reinterpret_cast<u64>(weights) % (V * T::bytes) == 0)
      return read_start<T, V, keep>(static_cast<const char*>(weights) + (cols - rest) * T::bytes, rest);
  }
  return filled_vector<T, V, fill_zero>();
}

/// The elements of a vector at `p`, one after the other, of which those at columns 0 to cols - 1 are there: for the
/// ends of arrays that are not aligned, in small code.
template <class T, int V>
ROWTUNE_DEVICE Vec<T, V> read_elements(const char* p, i64 first, i64 cols) {
  constexpr int count = words_of_vector<T, V>();
  Vec<T, V> v = filled_vector<T, V, fill_zero>();
#pragma unroll 1
  for (int j = 0; j < V; ++j) {  // each element moves the others down, so that none needs an index into registers
    unsigned bits = 0;
    if (first + j < cols) bits = word_of(load_vector<T, 1, keep>(p + j * T::bytes).words, 0);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const unsigned behind = i + 1 < count ? word_of(v.words, i + 1) : bits;
      set_word(v.words, i, T::bytes == 4 ? behind : funnel_shift(word_of(v.words, i), behind, 16));
    }
  }
  return v;
}

/// Weights or biases of a vector's columns, 0 where there is no vector; the array starts at a vector boundary unless
/// K::ragged. Ragged rows find them in two aligned vectors, shifted; `last` is the array's last_weights.
template <class K, class Index>
ROWTUNE_DEVICE Vec<typename K::Element, K::vector> read_weights(const void* weights, i64 cols, const Place<Index>& at,
                                                                const Vec<typename K::Element, K::vector>& last) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  if (!at.exists) return filled_vector<T, V, fill_zero>();
  const char* const array = static_cast<const char*>(weights);
  const char* const p = array + static_cast<i64>(at.first) * T::bytes;
  if constexpr (!K::ragged || V == 1) {
    return load_vector<T, V, keep>(p);
  } else {
    const int behind = static_cast<int>(reinterpret_cast<u64>(p) % (V * T::bytes)) / T::bytes;
    if (behind == 0) return load_vector<T, V, keep>(p);
    const i64 first = at.first - behind;
    const bool last_is_whole = first + 2 * V <= cols;
    if (reinterpret_cast<u64>(array) % (V * T::bytes) != 0 && (first < 0 || !last_is_whole))
      return read_elements<T, V>(p, at.first, cols);
    const char* const two = p - behind * T::bytes;
    return shifted(load_vector<T, V, keep>(two), last_is_whole ? load_vector<T, V, keep>(two + V * T::bytes) : last,
                   behind);
  }
}

/// Some models store a weight less one.
template <class K, int N>
ROWTUNE_DEVICE void add_offset(const RowArgs& a, float (&w)[N]) {
  if constexpr (K::weight) {
#pragma unroll
    for (int j = 0; j < N; ++j) w[j] += a.weight_offset;
  }
}

template <class K>
ROWTUNE_DEVICE Geometry<K, int> geometry_of(const RowArgs& a, i64 row) {
  return {static_cast<const char*>(a.input) + row * a.input_stride * K::Element::bytes, a.cols};
}

/// Of a thread's edges: always loaded before the row is reduced.
template <class K, class Team>
struct EdgeWeights {
  using T = typename K::Element;
  static constexpr int count = edges_per_thread<K>(Team::size);
  Vec<T, 1> weight[count > 0 ? count : 1], bias[count > 0 ? count : 1];

  ROWTUNE_DEVICE void read(const RowArgs& a, const Geometry<K, int>& geometry, int rank) {
#pragma unroll
    for (int n = 0; n < count; ++n) {
      const auto at = geometry.edge(n * Team::size + rank);
      if constexpr (K::weight) weight[n] = read_at<K, fill_zero, keep, 1>(static_cast<const char*>(a.weight), at);
      if constexpr (K::bias) bias[n] = read_at<K, fill_zero, keep, 1>(static_cast<const char*>(a.bias), at);
    }
  }
  ROWTUNE_DEVICE void get(const RowArgs& a, int n, float (&w)[1], float (&b)[1]) const {
    if constexpr (K::weight) weight[n].unpack(w);
    if constexpr (K::bias) bias[n].unpack(b);
    add_offset<K>(a, w);
  }
};

/// What the norms multiply and add, for a thread's vectors. K::early: loaded before a row is reduced, so that their
/// latency is not behind the reduction's. Once for all rows of a thread whose columns lie alike: all rows, or, in a
/// ragged matrix, those of the same lead. They wait in registers, or (K::shared_weights) in the block's dynamic shared
/// memory, where each thread reads back only what it stored itself. Lanes of ragged rows: SharedWeights.
template <class K, class Team>
struct Weights {
  using Packed = Vec<typename K::Element, K::vector>;
  static constexpr bool any = K::weight || K::bias;
  static constexpr bool held = K::early && any;
  static constexpr bool in_shared = held && K::shared_weights;
  static constexpr bool copied = in_shared && !K::ragged;  ///< by asynchronous copies, while the row is on its way
  static constexpr int count = held && !in_shared ? K::vectors : 1;
  Packed weight[count], bias[count];  ///< not held: last_weights
  EdgeWeights<K, Team> edges;
  int lead = -1;  ///< of the rows that they are for

  /// Before a row is looked at.
  ROWTUNE_DEVICE void prepare(const RowArgs& a, i64 row, const Team& team) {
    if constexpr (any) {
      const Geometry<K, int> geometry = geometry_of<K>(a, row);
      if (geometry.lead == lead) return;
      lead = geometry.lead;
      edges.read(a, geometry, team.rank());
      Packed last_weight, last_bias;
      if constexpr (K::weight) last_weight = last_weights<K>(a.weight, a.cols);
      if constexpr (K::bias) last_bias = last_weights<K>(a.bias, a.cols);
      if constexpr (held) {
#pragma unroll
        for (int n = 0; n < K::vectors; ++n) {
          const auto at = geometry.vector(n * Team::size + team.rank());
          if constexpr (copied) {
            if constexpr (K::weight) copy_weights<0>(n, a.weight, at);
            if constexpr (K::bias) copy_weights<1>(n, a.bias, at);
          } else {
            if constexpr (K::weight) keep_weights<0>(n, read_weights<K>(a.weight, a.cols, at, last_weight));
            if constexpr (K::bias) keep_weights<1>(n, read_weights<K>(a.bias, a.cols, at, last_bias));
          }
        }
      } else {
        if constexpr (K::weight) weight[0] = last_weight;
        if constexpr (K::bias) bias[0] = last_bias;
      }
    }
  }
  /// Once the row's loads are issued. Weights in registers arrive with the row: ptxas would move their loads behind the
  /// shuffles of the reduction, which is the latency that loading them early is to hide.
  template <class View>
  ROWTUNE_DEVICE void arrive_with(const RowArgs& a, View& view) const {
    if constexpr (held && !in_shared) {
      unsigned bits = 0;
#pragma unroll
      for (int n = 0; n < K::vectors; ++n) {
        if constexpr (K::weight) bits ^= word_of(weight[n].words, 0);
        if constexpr (K::bias) bits ^= word_of(bias[n].words, 0);
      }
      view.tie(bits & a.opaque);
    }
  }
  /// After the row is reduced.
  ROWTUNE_DEVICE void arrive() const {
    if constexpr (copied) async_wait();
  }
  /// Those of the thread's n-th vector or edge as floats.
  template <class At, int N>
  ROWTUNE_DEVICE void get(const RowArgs& a, int n, const At& at, float (&w)[N], float (&b)[N]) const {
    if constexpr (N != K::vector) {
      edges.get(a, n, w, b);
    } else {
      if constexpr (in_shared) {
        if constexpr (K::weight) Packed{shared_load(slot<0>(n))}.unpack(w);
        if constexpr (K::bias) Packed{shared_load(slot<1>(n))}.unpack(b);
      } else if constexpr (held) {
        if constexpr (K::weight) weight[n].unpack(w);
        if constexpr (K::bias) bias[n].unpack(b);
      } else {
        if constexpr (K::weight) read_weights<K>(a.weight, a.cols, at, weight[0]).unpack(w);
        if constexpr (K::bias) read_weights<K>(a.bias, a.cols, at, bias[0]).unpack(b);
      }
      add_offset<K>(a, w);
    }
  }

 private:
  template <int Bias>
  static ROWTUNE_DEVICE Words4* slot(int n) {
    static_assert(!in_shared || K::vector * K::Element::bytes == 16, "a vector is one 16-byte slot");
    return shared_dynamic() + ((K::weight ? Bias : 0) * K::vectors + n) * K::block + thread_index();
  }
  template <int Bias>
  ROWTUNE_DEVICE void keep_weights(int n, const Packed& v) {
    if constexpr (in_shared)
      shared_store(slot<Bias>(n), v.words);
    else
      (Bias == 0 ? weight : bias)[n] = v;
  }
  template <int Bias>
  static ROWTUNE_DEVICE void copy_weights(int n, const void* array, const Place<int>& at) {
    if (at.exists)
      async_copy16(slot<Bias>(n), reinterpret_cast<const Words4*>(static_cast<const char*>(array) +
                                                                  static_cast<i64>(at.first) * K::Element::bytes));
    else
      shared_store(slot<Bias>(n), filled_vector<typename K::Element, K::vector, fill_zero>().words);
  }
};

/// The same in the shared memory of a block whose rows are ragged: aligned vectors, of which a thread reads two and
/// shifts them. `fetch` issues the loads, `settle` stores them and meets at a barrier.
template <class K, class Team>
struct SharedWeights {
  using Packed = Vec<typename K::Element, K::vector>;
  using Words = typename Packed::Words;
  static constexpr int arrays = (K::weight ? 1 : 0) + (K::bias ? 1 : 0);
  static constexpr int slots = K::vectors * Team::size + 1;  ///< the last row vector may begin within the last but one
  static constexpr int each = (slots + K::block - 1) / K::block;
  Packed fetched[arrays][each];
  EdgeWeights<K, Team> edges;
  const Words* own;  ///< in shared memory: where this thread's first vector begins
  int behind;        ///< and how many elements behind that

  static ROWTUNE_DEVICE Words* shared() { return shared_array<Words, arrays * slots, tag_weights>(); }

  ROWTUNE_DEVICE void fetch(const RowArgs& a, i64 row, const Team& team) {
    const Geometry<K, int> geometry = geometry_of<K>(a, row);
    behind = geometry.lead;
    own = shared() + team.rank();
    edges.read(a, geometry, team.rank());
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int first = (i * K::block + thread_index()) * K::vector;
      if constexpr (K::weight) fetched[0][i] = read(a.weight, first, static_cast<int>(a.cols));
      if constexpr (K::bias) fetched[arrays - 1][i] = read(a.bias, first, static_cast<int>(a.cols));
    }
  }
  ROWTUNE_DEVICE void settle() {
#pragma unroll
    for (int k = 0; k < arrays; ++k) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int slot = i * K::block + thread_index();
        if (slot < slots) shared_store(shared() + k * slots + slot, fetched[k][i].words);
      }
    }
    block_barrier();
  }
  ROWTUNE_DEVICE void arrive() const {}
  template <class At, int N>
  ROWTUNE_DEVICE void get(const RowArgs& a, int n, const At&, float (&w)[N], float (&b)[N]) const {
    if constexpr (N != K::vector) {
      edges.get(a, n, w, b);
    } else {
      if constexpr (K::weight) vector_at(n * Team::size).unpack(w);
      if constexpr (K::bias) vector_at((arrays - 1) * slots + n * Team::size).unpack(b);
      add_offset<K>(a, w);
    }
  }

 private:
  ROWTUNE_DEVICE Packed vector_at(int slot) const {
    return shifted(Packed{shared_load(own + slot)}, Packed{shared_load(own + slot + 1)}, behind);
  }
  static ROWTUNE_DEVICE Packed read(const void* weights, int first, int cols) {
    using T = typename K::Element;
    const char* const p = static_cast<const char*>(weights) + static_cast<i64>(first) * T::bytes;
    if (first + K::vector <= cols && reinterpret_cast<u64>(weights) % (K::vector * T::bytes) == 0)
      return load_vector<T, K::vector, keep>(p);
    return read_elements<T, K::vector>(p, first, cols);
  }
};

}  // namespace rowtune
