#pragma once
// Geometry of a row in vectors, and the loads and stores of one vector with exact tails.
//
// Vector i of a row holds columns [i V - head, (i + 1) V - head). `head` is 0 where rows start at vector boundaries;
// in a ragged matrix it is how far the row's first element lies behind such a boundary, the same for all tensors of the
// launch. A vector that lies wholly inside the row is one access. The first and last of a ragged row overhang into its
// neighbours: they are read whole where that stays inside the tensor (what is not the row's is dropped), element by
// element at the tensor's ends, and always written element by element. Absent elements read as the operation's neutral
// value. Reading is in two steps, so that no load waits for another's elements to be sorted out: `fetch` issues the
// loads, `settle` drops what is not the row's.

#include "rowtune/args.cuh"

namespace rowtune {

/// Which elements of a vector exist.
template <class K, class Index>
struct Mask {
  Index first;  ///< column of element 0; may be negative
  Index cols;
  bool whole;
  ROWTUNE_DEVICE bool valid(int j) const {
    if constexpr (!K::ragged) return whole;
    return whole || (first + j >= 0 && first + j < cols);
  }
  /// Elements of the vector that exist.
  ROWTUNE_DEVICE int count() const {
    if (whole) return K::vector;
    if constexpr (!K::ragged) return 0;
    const Part p = part();
    return p.high > p.low ? p.high - p.low : 0;
  }
  /// Those from `low` to below `high`; none where low >= high.
  struct Part {
    int low;
    int high;
    ROWTUNE_DEVICE bool has(int j) const { return low <= j && j < high; }
    ROWTUNE_DEVICE bool has(int j, int count) const { return low <= j && j + count <= high; }
  };
  ROWTUNE_DEVICE Part part() const {
    if constexpr (!K::ragged) return {0, whole ? K::vector : 0};
    return {within(-first), within(cols - first)};
  }

 private:
  static ROWTUNE_DEVICE int within(Index j) { return j < 0 ? 0 : j > K::vector ? K::vector : static_cast<int>(j); }
};

template <class K, class Index>
struct Geometry {
  static constexpr int V = K::vector;
  Index cols;
  Index head;
  Index vectors;

  /// `input_row` decides the head: all tensors of the launch share it.
  ROWTUNE_DEVICE Geometry(const char* input_row, i64 columns) {
    cols = K::cols > 0 && columns != 0 ? static_cast<Index>(K::cols) : static_cast<Index>(columns);
    head = 0;
    if constexpr (K::ragged)
      head = static_cast<Index>((reinterpret_cast<u64>(input_row) % (V * K::Element::bytes)) / K::Element::bytes);
    vectors = (cols + head + (K::ragged ? V - 1 : 0)) / V;
  }
  /// Elements that a group of `lanes` neighbours holds, the first of which has `rank` among the `size` threads of a
  /// team: its vectors are rank, rank + size, ...
  ROWTUNE_DEVICE int count(int rank, int lanes, int size) const {
    const Index period = static_cast<Index>(size) * V, end = head + cols;
    const Index last = end % period - static_cast<Index>(rank) * V;  // of the group's part of the last round
    const Index most = static_cast<Index>(lanes) * V;
    const Index all = end / period * most + (last < 0 ? 0 : last < most ? last : most);
    return static_cast<int>(all - (rank == 0 ? head : 0));
  }
  ROWTUNE_DEVICE Mask<K, Index> mask(Index i) const {
    const Index first = i * V - head;
    const bool whole = K::ragged ? (first >= 0 && first <= cols - V) : i < vectors;
    return {first, cols, whole};
  }
};

template <class T>
struct ScalarWord {
  using type = unsigned short;
};
template <>
struct ScalarWord<f32> {
  using type = unsigned;
};

/// Neutral values of absent elements.
enum Fill { fill_zero, fill_minus_infinity };
template <class T>
ROWTUNE_DEVICE constexpr unsigned minus_infinity_bits();
template <>
ROWTUNE_DEVICE constexpr unsigned minus_infinity_bits<f32>() {
  return 0xff800000u;
}
template <>
ROWTUNE_DEVICE constexpr unsigned minus_infinity_bits<f16>() {
  return 0xfc00u;
}
template <>
ROWTUNE_DEVICE constexpr unsigned minus_infinity_bits<bf16>() {
  return 0xff80u;
}

template <class T, int V, Fill F>
ROWTUNE_DEVICE Vec<T, V> filled_vector() {
  Vec<T, V> v;
  constexpr unsigned bits = F == fill_zero ? 0u : minus_infinity_bits<T>();
#pragma unroll
  for (int i = 0; i < (V * T::bytes + 3) / 4; ++i)
    set_word(v.words, i, T::bytes == 4 || V == 1 ? bits : bits | (bits << 16));
  return v;
}

template <class T, int V>
constexpr int words_of_vector = (V * T::bytes + 3) / 4;

/// The bits of word i of a vector that hold elements of a part.
template <class T, class Part>
ROWTUNE_DEVICE unsigned bits_of_part(const Part& part, int i) {
  if constexpr (T::bytes == 4) return part.has(i) ? 0xffffffffu : 0u;
  return (part.has(2 * i) ? 0xffffu : 0u) | (part.has(2 * i + 1) ? 0xffff0000u : 0u);
}

// The vectors that are not whole are few, but every ragged row has one or two, and the lanes beside theirs wait. So
// what follows goes word by word without a loop, all accesses at once.

/// The elements of a vector at `p` that exist, one after the other: for the few at the ends of a tensor, in small code.
template <class K, Fill F, int H, class Index>
ROWTUNE_DEVICE Vec<typename K::Element, K::vector> read_part(const char* p, const Mask<K, Index>& mask) {
  using T = typename K::Element;
  constexpr int V = K::vector, count = words_of_vector<T, V>;
  using Scalar = typename ScalarWord<T>::type;
  Vec<T, V> v = filled_vector<T, V, F>();
  const unsigned neutral = word_of(v.words, 0) & (T::bytes == 2 ? 0xffffu : 0xffffffffu);
#pragma unroll 1
  for (int j = 0; j < V; ++j) {  // each element moves the others down, so that none needs an index into registers
    const unsigned bits = mask.valid(j) ? global_load<H>(reinterpret_cast<const Scalar*>(p + j * T::bytes)) : neutral;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const unsigned behind = i + 1 < count ? word_of(v.words, i + 1) : bits;
      set_word(v.words, i, T::bytes == 4 ? behind : funnel_shift(word_of(v.words, i), behind, 16));
    }
  }
  return v;
}

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
      for (int i = 0; i < words_of_vector<T, V>; i += 2)
        if ((bytes & 8) / 4 == i) set_word(v.words, i, one);
    }
  }
  if constexpr (T::bytes == 2) {
    if ((bytes & 2) != 0) {
      const unsigned half = global_load<H>(reinterpret_cast<const unsigned short*>(p + bytes - 2));
#pragma unroll
      for (int i = 0; i < words_of_vector<T, V>; ++i)
        if (bytes / 4 == i) set_word(v.words, i, half);
    }
  }
  return v;
}

/// How far beyond a row its tensor goes on, in elements, as far as it matters: at most one vector.
template <class K, class Index>
struct Overhang {
  Index low;   ///< least column (0 or negative) that may be read
  Index high;  ///< one past the greatest

  /// Whoever has a neighbour has at least a row length beside it; more than a vector does not matter.
  ROWTUNE_DEVICE Overhang(i64 row, i64 rows, i64 stride, Index cols) {
    const Index beside = stride < K::vector ? static_cast<Index>(stride) : K::vector;
    low = row > 0 ? -beside : 0;
    high = cols + (row + 1 < rows ? beside : 0);
  }
};

/// `row` is the address of the row's element 0. Elements that are not the row's mean nothing until `drop_foreign`.
template <class K, Fill F, int H, class Index>
ROWTUNE_DEVICE Vec<typename K::Element, K::vector> fetch_vector(const char* row, const Mask<K, Index>& mask,
                                                                const Overhang<K, Index>& overhang) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  const char* p = row + static_cast<i64>(mask.first) * T::bytes;
  if (mask.whole) return load_vector<T, V, H>(p);
  if constexpr (K::ragged && V > 1) {
    if (mask.count() > 0) {
      if (mask.first >= overhang.low && mask.first + V <= overhang.high)
        return {global_load_overhang<H>(reinterpret_cast<const typename Vec<T, V>::Words*>(p))};
      return read_part<K, F, H>(p, mask);
    }
  }
  return filled_vector<T, V, F>();
}

template <class K, Fill F, class Index>
ROWTUNE_DEVICE void drop_foreign(Vec<typename K::Element, K::vector>& v, const Mask<K, Index>& mask) {
  using T = typename K::Element;
  if constexpr (K::ragged && K::vector > 1) {
    if (mask.whole) return;
    const auto part = mask.part();
    const auto neutral = filled_vector<T, K::vector, F>();
#pragma unroll
    for (int i = 0; i < words_of_vector<T, K::vector>; ++i) {
      const unsigned own = bits_of_part<T>(part, i);
      set_word(v.words, i, (word_of(v.words, i) & own) | (word_of(neutral.words, i) & ~own));
    }
  }
}

/// Word i of a vector, i not known at compile time. By the bits of i: a chain of comparisons with every i came out of
/// NVRTC 13.0 as word 0 whatever i was.
template <class T, int V>
ROWTUNE_DEVICE unsigned word_at(const Vec<T, V>& v, int i) {
  constexpr int count = words_of_vector<T, V>;
  unsigned w[count];
#pragma unroll
  for (int k = 0; k < count; ++k) w[k] = word_of(v.words, k);
#pragma unroll
  for (int d = count / 2; d > 0; d /= 2) {
#pragma unroll
    for (int k = 0; k < d; ++k) w[k] = (i & d) != 0 ? w[k + d] : w[k];
  }
  return w[0];
}

template <class K, int H, class Index>
ROWTUNE_DEVICE void write_vector(char* row, const Mask<K, Index>& mask, const Vec<typename K::Element, K::vector>& v) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  char* p = row + static_cast<i64>(mask.first) * T::bytes;
  if (mask.whole) {
    store_vector<T, V, H>(p, v);
  } else if constexpr (K::ragged && V > 1) {
    const auto part = mask.part();
    if (part.low >= part.high) return;
#pragma unroll
    for (int i = 0; i < words_of_vector<T, V>; ++i)
      if (part.has(i * 4 / T::bytes, 4 / T::bytes))
        global_store<H>(reinterpret_cast<unsigned*>(p + i * 4), word_of(v.words, i));
    if constexpr (T::bytes == 2) {  // at most one half of a word at either end
      using Half = unsigned short;
      if (part.low % 2 == 1)
        global_store<H>(reinterpret_cast<Half*>(p + part.low * 2), static_cast<Half>(word_at(v, part.low / 2) >> 16));
      if (part.high % 2 == 1)
        global_store<H>(reinterpret_cast<Half*>(p + part.high * 2 - 2), static_cast<Half>(word_at(v, part.high / 2)));
    }
  }
}

/// A vector that begins `elements` (0 to V - 1) behind the start of the first of two neighbours.
template <class T, int V>
ROWTUNE_DEVICE Vec<T, V> shifted(const Vec<T, V>& a, const Vec<T, V>& b, int elements) {
  constexpr int count = words_of_vector<T, V>;
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
      const Geometry<K, int> geometry(static_cast<const char*>(a.input) + row * a.input_stride * K::Element::bytes,
                                      a.cols);
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
    const Geometry<K, int> geometry(static_cast<const char*>(a.input) + row * a.input_stride * K::Element::bytes,
                                    a.cols);
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

/// The rows of one launch: where they are, and what a kernel sees of them. fused_add_rmsnorm: the sum of hidden and
/// residual, rounded to the dtype and stored as the new residual at the first read.
template <class K, Fill F, class Index>
struct RowData {
  using T = typename K::Element;
  using Packed = Vec<T, K::vector>;
  const char* input;
  const char* residual;
  char* output;
  char* residual_out;
  Geometry<K, Index> geometry;
  Overhang<K, Index> overhang;

  ROWTUNE_DEVICE RowData(const RowArgs& a, i64 row)
      : input(static_cast<const char*>(a.input) + row * a.input_stride * T::bytes),
        residual(K::adds_residual ? static_cast<const char*>(a.residual) + row * a.residual_stride * T::bytes
                                  : nullptr),
        output(static_cast<char*>(a.output) + row * a.output_stride * T::bytes),
        residual_out(K::adds_residual ? static_cast<char*>(a.residual_out) + row * a.residual_out_stride * T::bytes
                                      : nullptr),
        geometry(input, a.cols),
        overhang(row, a.rows, least_stride(a), geometry.cols) {}

  static ROWTUNE_DEVICE i64 least_stride(const RowArgs& a) {
    if constexpr (!K::adds_residual) return a.input_stride;
    const i64 in = a.input_stride < a.residual_stride ? a.input_stride : a.residual_stride;
    return in < a.residual_out_stride ? in : a.residual_out_stride;
  }

  struct Fetched {
    Packed x;
    Packed r;  ///< unused without a residual
  };
  /// First look at a vector of the row: issues its loads.
  ROWTUNE_DEVICE Fetched fetch(Index i) const {
    const auto mask = geometry.mask(i);
    Fetched f;
    f.x = fetch_vector<K, F, K::load_hint>(input, mask, overhang);
    if constexpr (K::adds_residual) f.r = fetch_vector<K, F, K::load_hint>(residual, mask, overhang);
    return f;
  }
  /// What the first look saw, absent elements neutral; stores the new residual.
  ROWTUNE_DEVICE Packed settle(const Fetched& f, Index i) const {
    const auto mask = geometry.mask(i);
    Packed x = f.x;
    if constexpr (K::adds_residual) {
      float sum[K::vector];
#pragma unroll
      for (int j = 0; j < K::vector; ++j) sum[j] = x.get(j) + f.r.get(j);
      x = Packed::pack(sum);
      write_vector<K, K::store_hint>(residual_out, mask, x);
    }
    drop_foreign<K, F>(x, mask);
    return x;
  }
  /// A later look at the same vector.
  ROWTUNE_DEVICE Fetched fetch_again(Index i) const {
    Fetched f;
    f.x = fetch_vector<K, F, K::load_hint>(K::adds_residual ? residual_out : input, geometry.mask(i), overhang);
    return f;
  }
  ROWTUNE_DEVICE Packed settle_again(const Fetched& f, Index i) const {
    Packed x = f.x;
    drop_foreign<K, F>(x, geometry.mask(i));
    return x;
  }
  ROWTUNE_DEVICE void write(Index i, const float (&y)[K::vector]) const {
    write_vector<K, K::store_hint>(output, geometry.mask(i), Packed::pack(y));
  }
};

}  // namespace rowtune
