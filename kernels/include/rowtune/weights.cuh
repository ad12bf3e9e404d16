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

/// Weights or biases of a vector's columns, 0 where there is no column; the array starts at a vector boundary unless
/// K::ragged. Ragged rows find them in two aligned vectors, shifted; `last` is the array's last_weights.
template <class K, class Index>
ROWTUNE_DEVICE Vec<typename K::Element, K::vector> read_weights(const void* weights, const Mask<K, Index>& mask,
                                                                const Vec<typename K::Element, K::vector>& last) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  const char* const array = static_cast<const char*>(weights);
  const char* const p = array + static_cast<i64>(mask.first) * T::bytes;
  const Vec<T, V> none = filled_vector<T, V, fill_zero>();
  if constexpr (!K::ragged || V == 1) {
    return mask.whole ? load_vector<T, V, keep>(p) : none;
  } else {
    if (mask.first >= mask.cols) return none;
    const int behind = static_cast<int>(reinterpret_cast<u64>(p) % (V * T::bytes)) / T::bytes;
    const Index first = mask.first - behind, end = mask.cols - V;
    if (reinterpret_cast<u64>(array) % (V * T::bytes) != 0 && (first < 0 || first + V > end))
      return read_part<K, fill_zero, keep>(p, mask);  // at either end of an array that is not aligned
    const char* const at = p - behind * T::bytes;
    const Vec<T, V> a = first < 0 ? none : first <= end ? load_vector<T, V, keep>(at) : last;
    if (behind == 0) return a;
    return shifted(a, first + V <= end ? load_vector<T, V, keep>(at + V * T::bytes) : last, behind);
  }
}

/// Some models store a weight less one.
template <class K>
ROWTUNE_DEVICE void add_offset(const RowArgs& a, float (&w)[K::vector]) {
  if constexpr (K::weight) {
#pragma unroll
    for (int j = 0; j < K::vector; ++j) w[j] += a.weight_offset;
  }
}

template <class K>
ROWTUNE_DEVICE Geometry<K, int> geometry_of(const RowArgs& a, i64 row) {
  return {static_cast<const char*>(a.input) + row * a.input_stride * K::Element::bytes, a.cols};
}

/// What the norms multiply and add, for a thread's vectors. K::early: loaded before a row is reduced, so that their
/// latency is not behind the reduction's. Once for all rows of a thread whose columns lie alike: all rows, or, in a
/// ragged matrix, those of the same head. They wait in registers, or (K::shared_weights) in the block's dynamic shared
/// memory, where each thread reads back only what it stored itself. Lanes of ragged rows: SharedWeights.
template <class K, class Team>
struct Weights {
  using Packed = Vec<typename K::Element, K::vector>;
  static constexpr bool held = K::early && (K::weight || K::bias);
  static constexpr bool in_shared = held && K::shared_weights;
  static constexpr int count = held && !in_shared ? K::vectors : 1;
  Packed weight[count], bias[count];  ///< not held: last_weights
  int head = -1;                      ///< of the rows that they are for

  /// Before a row is looked at.
  ROWTUNE_DEVICE void prepare(const RowArgs& a, i64 row, const Team& team) {
    if constexpr (held) {
      const Geometry<K, int> geometry = geometry_of<K>(a, row);
      if (geometry.head == head) return;
      head = geometry.head;
      Packed last_weight, last_bias;
      if constexpr (K::weight) last_weight = last_weights<K>(a.weight, a.cols);
      if constexpr (K::bias) last_bias = last_weights<K>(a.bias, a.cols);
#pragma unroll
      for (int n = 0; n < K::vectors; ++n) {
        const auto mask = geometry.mask(n * Team::size + team.rank());
        if constexpr (K::weight) keep_weights<0>(n, read_weights<K>(a.weight, mask, last_weight));
        if constexpr (K::bias) keep_weights<1>(n, read_weights<K>(a.bias, mask, last_bias));
      }
    } else {
      if constexpr (K::weight) weight[0] = last_weights<K>(a.weight, a.cols);
      if constexpr (K::bias) bias[0] = last_weights<K>(a.bias, a.cols);
    }
  }
  /// Those of the thread's n-th vector as floats.
  template <class Mask>
  ROWTUNE_DEVICE void get(const RowArgs& a, int n, const Mask& mask, float (&w)[K::vector],
                          float (&b)[K::vector]) const {
    if constexpr (in_shared) {
      if constexpr (K::weight) Packed{shared_load(slot<0>(n))}.unpack(w);
      if constexpr (K::bias) Packed{shared_load(slot<1>(n))}.unpack(b);
    } else if constexpr (held) {
      if constexpr (K::weight) weight[n].unpack(w);
      if constexpr (K::bias) bias[n].unpack(b);
    } else {
      if constexpr (K::weight) read_weights<K>(a.weight, mask, weight[0]).unpack(w);
      if constexpr (K::bias) read_weights<K>(a.bias, mask, bias[0]).unpack(b);
    }
    add_offset<K>(a, w);
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
};

/// The same in the shared memory of a block whose rows are ragged: aligned vectors, of which a thread reads two and
/// shifts them; no edges are left to look at. `fetch` issues the loads, `settle` stores them and meets at a barrier.
template <class K, class Team>
struct SharedWeights {
  using Packed = Vec<typename K::Element, K::vector>;
  using Words = typename Packed::Words;
  static constexpr int arrays = (K::weight ? 1 : 0) + (K::bias ? 1 : 0);
  static constexpr int slots = K::vectors * Team::size + 2;  ///< one before the first column, one behind the last
  static constexpr int each = (slots + K::block - 1) / K::block;
  Packed fetched[arrays][each];
  const Words* own;  ///< in shared memory: where this thread's first vector begins
  int behind;        ///< and how many elements behind that

  static ROWTUNE_DEVICE Words* shared() { return shared_array<Words, arrays * slots, tag_weights>(); }

  ROWTUNE_DEVICE void fetch(const RowArgs& a) {
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const int first = (i * K::block + thread_index() - 1) * K::vector;
      if constexpr (K::weight) fetched[0][i] = read(a.weight, first, static_cast<int>(a.cols));
      if constexpr (K::bias) fetched[arrays - 1][i] = read(a.bias, first, static_cast<int>(a.cols));
    }
  }
  ROWTUNE_DEVICE void settle(const RowArgs& a, i64 row, const Team& team) {
#pragma unroll
    for (int k = 0; k < arrays; ++k) {
#pragma unroll
      for (int i = 0; i < each; ++i) {
        const int slot = i * K::block + thread_index();
        if (slot < slots) shared_store(shared() + k * slots + slot, fetched[k][i].words);
      }
    }
    block_barrier();
    const Geometry<K, int> geometry = geometry_of<K>(a, row);
    behind = geometry.head == 0 ? 0 : K::vector - geometry.head;
    own = shared() + team.rank() + (geometry.head == 0 ? 1 : 0);
  }
  template <class Mask>
  ROWTUNE_DEVICE void get(const RowArgs& a, int n, const Mask&, float (&w)[K::vector], float (&b)[K::vector]) const {
    if constexpr (K::weight) vector_at(n * Team::size).unpack(w);
    if constexpr (K::bias) vector_at((arrays - 1) * slots + n * Team::size).unpack(b);
    add_offset<K>(a, w);
  }

 private:
  ROWTUNE_DEVICE Packed vector_at(int slot) const {
    return shifted(Packed{shared_load(own + slot)}, Packed{shared_load(own + slot + 1)}, behind);
  }
  static ROWTUNE_DEVICE Packed read(const void* weights, int first, int cols) {
    using T = typename K::Element;
    const Mask<K, int> mask{first, cols, first >= 0 && first <= cols - K::vector};
    const char* const p = static_cast<const char*>(weights) + static_cast<i64>(first) * T::bytes;
    if (mask.whole && reinterpret_cast<u64>(weights) % (K::vector * T::bytes) == 0)
      return load_vector<T, K::vector, keep>(p);
    if (first + K::vector <= 0 || first >= cols) return filled_vector<T, K::vector, fill_zero>();
    return read_part<K, fill_zero, keep>(p, mask);
  }
};

}  // namespace rowtune
