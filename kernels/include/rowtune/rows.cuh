#pragma once
// Geometry of a row in vectors, and the loads and stores of one vector with exact tails.
//
// Vector i of a row holds columns [i V - head, (i + 1) V - head). `head` is 0 where rows start at vector boundaries;
// in a ragged matrix it is how far the row's first element lies behind such a boundary, the same for all tensors of the
// launch. A vector that lies wholly inside the row is one access; the first and last take one access per element, so
// nothing outside the row is read or written. Absent elements read as the operation's neutral value.

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

/// `row` is the address of the row's element 0.
template <class K, Fill F, int H, class Index>
ROWTUNE_DEVICE Vec<typename K::Element, K::vector> read_vector(const char* row, const Mask<K, Index>& mask) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  const char* p = row + static_cast<i64>(mask.first) * T::bytes;
  if (mask.whole) return load_vector<T, V, H>(p);
  Vec<T, V> v = filled_vector<T, V, F>();
  if constexpr (K::ragged && V > 1) {
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (mask.valid(j))
        set_element(v, j, global_load<H>(reinterpret_cast<const typename ScalarWord<T>::type*>(p + j * T::bytes)));
  }
  return v;
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
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (mask.valid(j))
        global_store<H>(reinterpret_cast<Scalar*>(p + j * T::bytes), static_cast<Scalar>(element_bits(v, j)));
  }
}

/// Weights or biases of a vector's columns as floats; the array starts at a vector boundary unless K::ragged.
template <class K, class Index>
ROWTUNE_DEVICE void read_weights(const void* weights, const Mask<K, Index>& mask, float (&w)[K::vector]) {
  using T = typename K::Element;
  constexpr int V = K::vector;
  const char* p = static_cast<const char*>(weights) + static_cast<i64>(mask.first) * T::bytes;
  if (mask.whole && (!K::ragged || reinterpret_cast<u64>(p) % (V * T::bytes) == 0)) {
    load_vector<T, V, keep>(p).unpack(w);
    return;
  }
  using Scalar = typename ScalarWord<T>::type;
#pragma unroll
  for (int j = 0; j < V; ++j) {
    Vec<T, 1> one = filled_vector<T, 1, fill_zero>();
    if (mask.valid(j)) one.words = global_load<keep>(reinterpret_cast<const Scalar*>(p + j * T::bytes));
    w[j] = one.get(0);
  }
}

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

  ROWTUNE_DEVICE RowData(const RowArgs& a, i64 row)
      : input(static_cast<const char*>(a.input) + row * a.input_stride * T::bytes),
        residual(K::adds_residual ? static_cast<const char*>(a.residual) + row * a.residual_stride * T::bytes
                                  : nullptr),
        output(static_cast<char*>(a.output) + row * a.output_stride * T::bytes),
        residual_out(K::adds_residual ? static_cast<char*>(a.residual_out) + row * a.residual_out_stride * T::bytes
                                      : nullptr),
        geometry(input, a.cols) {}

  /// First look at a vector of the row.
  ROWTUNE_DEVICE Packed read(Index i) const {
    const auto mask = geometry.mask(i);
    const Packed x = read_vector<K, F, K::load_hint>(input, mask);
    if constexpr (!K::adds_residual) {
      return x;
    } else {
      const Packed r = read_vector<K, F, K::load_hint>(residual, mask);
      float sum[K::vector];
#pragma unroll
      for (int j = 0; j < K::vector; ++j) sum[j] = x.get(j) + r.get(j);
      const Packed packed = Packed::pack(sum);
      write_vector<K, K::store_hint>(residual_out, mask, packed);
      return packed;
    }
  }
  /// A later look at the same vector.
  ROWTUNE_DEVICE Packed read_again(Index i) const {
    return read_vector<K, F, K::load_hint>(K::adds_residual ? residual_out : input, geometry.mask(i));
  }
  ROWTUNE_DEVICE void write(Index i, const float (&y)[K::vector]) const {
    write_vector<K, K::store_hint>(output, geometry.mask(i), Packed::pack(y));
  }
};

}  // namespace rowtune
