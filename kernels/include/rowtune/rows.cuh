#pragma once
// Geometry of a row in vectors and edges, and the loads and stores of both.
//
// Vector i of a row holds columns [lead + i V, lead + (i + 1) V): whole vectors at vector boundaries. `lead` is 0 where
// rows start at such boundaries; in a ragged matrix it is how many elements lie before the row's first boundary, the
// same for all tensors of the launch. What is left at either end, at most 2 V - 2 elements, are the row's edges: one
// element for each of a team's first threads. A tail handled as vectors would cost every lane the arithmetic of a
// vector, and of one more where a row of 1023 elements touches 129 vectors instead of 128.
// Absent vectors and edges read as the operation's neutral value.

#include "rowtune/args.cuh"

namespace rowtune {

/// Where a vector or an edge lies, and whether it is there.
template <class Index>
struct Place {
  Index first;  ///< column of element 0
  bool exists;
};

template <class K, class Index>
struct Geometry {
  static constexpr int V = K::vector;
  Index cols;
  Index lead;     ///< elements before the first vector
  Index vectors;  ///< whole ones

  /// `input_row` decides the lead: all tensors of the launch share it.
  ROWTUNE_DEVICE Geometry(const char* input_row, i64 columns) {
    cols = K::cols > 0 && columns != 0 ? static_cast<Index>(K::cols) : static_cast<Index>(columns);
    lead = 0;
    if constexpr (K::ragged) lead = static_cast<Index>((0 - reinterpret_cast<u64>(input_row) / K::Element::bytes) % V);
    vectors = (cols - lead) / V;  // 0, too, where the row ends within the lead
  }
  /// Elements that a group of `lanes` neighbours holds, the first of which has `rank` among the `size` threads of a
  /// team: its vectors and edges are rank, rank + size, ...
  ROWTUNE_DEVICE int count(int rank, int lanes, int size) const {
    if (lanes == size) return static_cast<int>(cols);
    const Index last = vectors % size - rank;  // of the group's part of the last round
    const Index mine = vectors / size * lanes + (last < 0 ? 0 : last < lanes ? last : lanes);
    return static_cast<int>(mine * V + (rank == 0 ? edges() : 0));
  }
  ROWTUNE_DEVICE Place<Index> vector(Index i) const { return {lead + i * V, i < vectors}; }
  ROWTUNE_DEVICE Index edges() const { return K::ragged ? cols - vectors * V : 0; }
  /// Edge i: the elements of the lead, then those behind the last vector.
  ROWTUNE_DEVICE Place<Index> edge(int i) const { return {i < lead ? i : vectors * V + i, i < edges()}; }
};

/// The most edges that a thread of a team of `size` has.
template <class K>
ROWTUNE_FUNCTION constexpr int edges_per_thread(int size) {
  return K::ragged ? (2 * K::vector - 2 + size - 1) / size : 0;
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

template <class T, int V>
ROWTUNE_FUNCTION constexpr int words_of_vector() {
  return (V * T::bytes + 3) / 4;
}

template <class T, int V, Fill F>
ROWTUNE_DEVICE Vec<T, V> filled_vector() {
  Vec<T, V> v;
  constexpr unsigned bits = F == fill_zero ? 0u : minus_infinity_bits<T>();
#pragma unroll
  for (int i = 0; i < words_of_vector<T, V>(); ++i)
    set_word(v.words, i, T::bytes == 4 || V == 1 ? bits : bits | (bits << 16));
  return v;
}

template <class K, Fill F, int H, int N, class Index>
ROWTUNE_DEVICE Vec<typename K::Element, N> read_at(const char* row, const Place<Index>& at) {
  using T = typename K::Element;
  if (at.exists) return load_vector<T, N, H>(row + static_cast<i64>(at.first) * T::bytes);
  return filled_vector<T, N, F>();
}

template <class K, int H, int N, class Index>
ROWTUNE_DEVICE void write_at(char* row, const Place<Index>& at, const Vec<typename K::Element, N>& v) {
  using T = typename K::Element;
  if (at.exists) store_vector<T, N, H>(row + static_cast<i64>(at.first) * T::bytes, v);
}

/// The rows of one launch: where they are, and what a kernel sees of them, N elements at a time: V of a vector, or the
/// one of an edge. fused_add_rmsnorm: the sum of hidden and residual, rounded to the dtype and stored as the new
/// residual at the first read.
template <class K, Fill F, class Index>
struct RowData {
  using T = typename K::Element;
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

  template <int N>
  struct Fetched {
    Vec<T, N> x;
    Vec<T, N> r;  ///< unused without a residual
  };
  /// First look: issues the loads.
  template <int N>
  ROWTUNE_DEVICE Fetched<N> fetch(const Place<Index>& at) const {
    Fetched<N> f;
    f.x = read_at<K, F, K::load_hint, N>(input, at);
    if constexpr (K::adds_residual) f.r = read_at<K, F, K::load_hint, N>(residual, at);
    return f;
  }
  /// What the first look saw; stores the new residual.
  template <int N>
  ROWTUNE_DEVICE Vec<T, N> settle(const Fetched<N>& f, const Place<Index>& at) const {
    if constexpr (K::adds_residual) {
      float sum[N];
#pragma unroll
      for (int j = 0; j < N; ++j) sum[j] = f.x.get(j) + f.r.get(j);
      const auto x = Vec<T, N>::pack(sum);
      write_at<K, K::store_hint, N>(residual_out, at, x);
      return x;
    } else {
      return f.x;
    }
  }
  /// A later look at the same elements.
  template <int N>
  ROWTUNE_DEVICE Fetched<N> fetch_again(const Place<Index>& at) const {
    Fetched<N> f;
    f.x = read_at<K, F, K::again_hint, N>(K::adds_residual ? residual_out : input, at);
    return f;
  }
  template <int N>
  ROWTUNE_DEVICE void write(const Place<Index>& at, const float (&y)[N]) const {
    write_at<K, K::store_hint, N>(output, at, Vec<T, N>::pack(y));
  }
};

}  // namespace rowtune
