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
  constexpr int V = K::vector, count = words_of_vector<T, V>();
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
    for (int i = 0; i < words_of_vector<T, K::vector>(); ++i) {
      const unsigned own = bits_of_part<T>(part, i);
      set_word(v.words, i, (word_of(v.words, i) & own) | (word_of(neutral.words, i) & ~own));
    }
  }
}

/// Word i of a vector, i not known at compile time. By the bits of i: a chain of comparisons with every i came out of
/// NVRTC 13.0 as word 0 whatever i was.
template <class T, int V>
ROWTUNE_DEVICE unsigned word_at(const Vec<T, V>& v, int i) {
  constexpr int count = words_of_vector<T, V>();
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
    for (int i = 0; i < words_of_vector<T, V>(); ++i)
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
