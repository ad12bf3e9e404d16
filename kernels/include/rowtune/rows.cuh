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
    const Index low = first < 0 ? 0 : first;
    const Index high = first + K::vector < cols ? first + K::vector : cols;
    return high > low ? static_cast<int>(high - low) : 0;
  }
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

template <class T, int V>
ROWTUNE_DEVICE void set_element(Vec<T, V>& v, int j, unsigned bits) {
  if constexpr (T::bytes == 4 || V == 1) {
    set_word(v.words, j, bits);
  } else {
    const unsigned old = word_of(v.words, j / 2);
    set_word(v.words, j / 2, j % 2 == 0 ? (old & 0xffff0000u) | bits : (old & 0xffffu) | (bits << 16));
  }
}
template <class T, int V>
ROWTUNE_DEVICE unsigned element_bits(const Vec<T, V>& v, int j) {
  if constexpr (T::bytes == 4 || V == 1) return word_of(v.words, j);
  return (word_of(v.words, j / 2) >> (16 * (j % 2))) & 0xffffu;
}

/// Takes the first element out; the others move up. Together with push_element a loop over the elements of a vector
/// that needs no index into registers: small code for the few vectors that are not whole (unrolled, it is most of a
/// kernel, and a kernel that outgrows the instruction cache is slow in all its vectors).
template <class T, int V>
ROWTUNE_DEVICE unsigned pop_element(Vec<T, V>& v) {
  const unsigned first = element_bits(v, 0);
  if constexpr (V > 1 && T::bytes == 4) {
#pragma unroll
    for (int i = 0; i + 1 < V; ++i) set_word(v.words, i, word_of(v.words, i + 1));
  } else if constexpr (V > 1) {
#pragma unroll
    for (int i = 0; i < V / 2; ++i)
      set_word(v.words, i, funnel_shift(word_of(v.words, i), i + 1 < V / 2 ? word_of(v.words, i + 1) : 0u, 16));
  }
  return first;
}
/// Drops the first element; the others move up, and `bits` becomes the last.
template <class T, int V>
ROWTUNE_DEVICE void push_element(Vec<T, V>& v, unsigned bits) {
  pop_element(v);
  set_element(v, V - 1, bits);
}

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

/// How far beyond a row its tensor goes on, in elements, as far as it matters: at most one vector.
template <class K, class Index>
struct Overhang {
  Index low;   ///< least column (0 or negative) that may be read
  Index high;  ///< one past the greatest

  ROWTUNE_DEVICE Overhang(i64 row, i64 rows, i64 stride, Index cols) {
    constexpr i64 most = K::vector;
    const i64 before = row * stride;
    const i64 behind = (rows - 1 - row) * stride;
    low = static_cast<Index>(-(before < most ? before : most));
    high = static_cast<Index>(cols + (behind < most ? behind : most));
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
      Vec<T, V> v = filled_vector<T, V, F>();
      const unsigned neutral = element_bits(v, 0);
#pragma unroll 1
      for (int j = 0; j < V; ++j)
        push_element(v, mask.valid(j)
                            ? global_load<H>(reinterpret_cast<const typename ScalarWord<T>::type*>(p + j * T::bytes))
                            : neutral);
      return v;
    }
  }
  return filled_vector<T, V, F>();
}

template <class K, Fill F, class Index>
ROWTUNE_DEVICE void drop_foreign(Vec<typename K::Element, K::vector>& v, const Mask<K, Index>& mask) {
  if constexpr (K::ragged && K::vector > 1) {
    if (mask.whole) return;
    const unsigned neutral = element_bits(filled_vector<typename K::Element, K::vector, F>(), 0);
#pragma unroll 1
    for (int j = 0; j < K::vector; ++j) {
      const unsigned bits = element_bits(v, 0);
      push_element(v, mask.valid(j) ? bits : neutral);
    }
  }
}

template <class K, int H, class Index>
ROWTUNE_DEVICE void write_vector(char* row, const Mask<K, Index>& mask, const Vec<typename K::Element, K::vector>& v) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  char* p = row + static_cast<i64>(mask.first) * T::bytes;
  if (mask.whole) {
    store_vector<T, V, H>(p, v);
  } else if constexpr (K::ragged && V > 1) {
    using Scalar = typename ScalarWord<T>::type;
    if (mask.count() == 0) return;
    Vec<T, V> rest = v;
#pragma unroll 1
    for (int j = 0; j < V; ++j) {
      const auto bits = static_cast<Scalar>(pop_element(rest));
      if (mask.valid(j)) global_store<H>(reinterpret_cast<Scalar*>(p + j * T::bytes), bits);
    }
  }
}

/// The 16 bytes that begin `elements` (0 to 7) 16-bit elements behind the start of 32 bytes.
ROWTUNE_DEVICE Words4 shifted(const Words4& a, const Words4& b, int elements) {
  unsigned w[8] = {a.w[0], a.w[1], a.w[2], a.w[3], b.w[0], b.w[1], b.w[2], b.w[3]};
  if (elements & 4) {
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = w[i + 2];
  }
  if (elements & 2) {
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = w[i + 1];
  }
  Words4 v;
#pragma unroll
  for (int i = 0; i < 4; ++i) v.w[i] = funnel_shift(w[i], w[i + 1], (elements & 1) * 16);
  return v;
}

/// Weights or biases of a vector's columns as floats; the array starts at a vector boundary unless K::ragged.
/// Ragged rows of 16-bit elements find them in two aligned vectors, shifted by the row's head.
template <class K, class Index>
ROWTUNE_DEVICE void read_weights(const void* weights, const Mask<K, Index>& mask, float (&w)[K::vector]) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  const char* p = static_cast<const char*>(weights) + static_cast<i64>(mask.first) * T::bytes;
  const int behind = K::ragged ? static_cast<int>(reinterpret_cast<u64>(p) % (V * T::bytes)) : 0;
  if (mask.whole && behind == 0) {
    load_vector<T, V, keep>(p).unpack(w);
    return;
  }
  if constexpr (T::bytes == 2 && V == 8) {
    const char* aligned = p - behind;
    const char* end = static_cast<const char*>(weights) + static_cast<i64>(mask.cols) * T::bytes;
    if (mask.whole && aligned >= static_cast<const char*>(weights) && aligned + 32 <= end) {
      const Vec<T, V> v{shifted(global_load<keep>(reinterpret_cast<const Words4*>(aligned)),
                                global_load<keep>(reinterpret_cast<const Words4*>(aligned + 16)), behind / T::bytes)};
      v.unpack(w);
      return;
    }
  }
  using Scalar = typename ScalarWord<T>::type;
  Vec<T, V> v = filled_vector<T, V, fill_zero>();
  if (mask.count() > 0) {
#pragma unroll 1
    for (int j = 0; j < V; ++j)
      push_element(v, mask.valid(j) ? global_load<keep>(reinterpret_cast<const Scalar*>(p + j * T::bytes)) : 0u);
  }
  v.unpack(w);
}

/// What the norms multiply and add, for a thread's vectors. K::early: loaded into registers before a row is reduced, so
/// that their latency is not behind the reduction's, and once for all rows of a thread whose columns lie alike: all
/// rows, or, in a ragged matrix, those of the same head.
template <class K, class Team>
struct Weights {
  using Packed = Vec<typename K::Element, K::vector>;
  static constexpr bool held = K::early && (K::weight || K::bias);
  static constexpr int count = held ? K::vectors : 1;
  Packed weight[count], bias[count];
  int head = -1;  ///< of the rows that they are for

  /// Before a row is looked at.
  ROWTUNE_DEVICE void prepare(const RowArgs& a, i64 row, const Team& team) {
    if constexpr (held) {
      const Geometry<K, int> geometry(static_cast<const char*>(a.input) + row * a.input_stride * K::Element::bytes,
                                      a.cols);
      if (geometry.head == head) return;
      head = geometry.head;
#pragma unroll
      for (int n = 0; n < K::vectors; ++n) {
        const auto mask = geometry.mask(n * Team::size + team.rank());
        if constexpr (K::weight) weight[n] = fetch(a.weight, mask);
        if constexpr (K::bias) bias[n] = fetch(a.bias, mask);
      }
    }
  }
  /// Those of the thread's n-th vector as floats.
  template <class Mask>
  ROWTUNE_DEVICE void get(const RowArgs& a, int n, const Mask& mask, float (&w)[K::vector],
                          float (&b)[K::vector]) const {
    if constexpr (held) {
      if constexpr (K::weight) weight[n].unpack(w);
      if constexpr (K::bias) bias[n].unpack(b);
    } else {
      if constexpr (K::weight) read_weights<K>(a.weight, mask, w);
      if constexpr (K::bias) read_weights<K>(a.bias, mask, b);
    }
  }

 private:
  static ROWTUNE_DEVICE Packed fetch(const void* array, const Mask<K, int>& mask) {
    using T = typename K::Element;
    if constexpr (K::ragged) {
      float w[K::vector];
      read_weights<K>(array, mask, w);
      return Packed::pack(w);  // exact: they were of this dtype
    } else {
      if (!mask.whole) return filled_vector<T, K::vector, fill_zero>();
      return load_vector<T, K::vector, keep>(static_cast<const char*>(array) + static_cast<i64>(mask.first) * T::bytes);
    }
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
