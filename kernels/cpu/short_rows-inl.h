// Rows that fit into registers: V vectors of one row, R rows at once so that one row's reductions hide behind
// another's.

#if defined(ROWTUNE_CPU_SHORT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROWTUNE_CPU_SHORT_ROWS_INL_H_
#undef ROWTUNE_CPU_SHORT_ROWS_INL_H_
#else
#define ROWTUNE_CPU_SHORT_ROWS_INL_H_
#endif

#include "kernels/cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

/// A row of n <= V lanes() elements in V vectors. V = 1 keeps the order of elements, larger V are pairs.
template <class E, int V>
struct ShortRow {
  using T = typename E::Memory;
  Vector v[V];

  /// Calls f(j) for every pair that is full and f(j, count) for the one that is not, j being its first vector.
  template <class F>
  static HWY_INLINE void for_pairs(int n, const F& f) {
#pragma GCC unroll 8
    for (int j = 0; j < V; j += 2) {
      const int left = n - j * lanes();
      if (left >= 2 * lanes())
        f(j);
      else if (left > 0)
        f(j, left);
    }
  }

  /// Asks for another row while this one is computed.
  static HWY_INLINE void prefetch(const T* p, int n) {
#pragma GCC unroll 8
    for (int j = 0; j < V; j += 2)
      if (j * lanes() < n) HWY_NAMESPACE::prefetch(p + j * lanes());
  }

  static HWY_INLINE ShortRow load(const T* p, int n) {  // 0 outside
    ShortRow row;
    if constexpr (V == 1) {
      row.v[0] = E::load_one(p, n);
    } else {
#pragma GCC unroll 16
      for (int j = 0; j < V; ++j) row.v[j] = hn::Zero(D());
      for_pairs(n, [&](int j, auto... count) ROWTUNE_STEP { row.set(j, E::load(p + j * lanes(), count...)); });
    }
    return row;
  }

  HWY_INLINE void store(T* p, int n, bool bypass) const {
    if constexpr (V == 1) {
      E::store_one(v[0], p, n);
    } else {
      for_pairs(n, [&](int j, auto... count) ROWTUNE_STEP {
        if (sizeof...(count) == 0 && bypass)
          E::stream({v[j], v[j + 1]}, p + j * lanes());
        else
          E::store({v[j], v[j + 1]}, p + j * lanes(), count...);
      });
    }
  }

  /// Stores, and becomes what a reader of the stored values will see.
  HWY_INLINE void store_and_read(T* p, int n) {
    if constexpr (V == 1) {
      v[0] = E::store_and_read_one(v[0], p, n);
    } else {
      for_pairs(n, [&](int j, auto... count) ROWTUNE_STEP {
        set(j, E::store_and_read({v[j], v[j + 1]}, p + j * lanes(), count...));
      });
    }
  }

  /// `other` in the lanes that are not elements.
  HWY_INLINE void fill_outside(int n, float other) {
    if (n == V * lanes()) return;
    const auto fill = hn::Set(D(), other);
    if constexpr (V == 1) {
      v[0] = hn::IfThenElse(hn::FirstN(D(), static_cast<std::size_t>(n)), v[0], fill);
    } else {
#pragma GCC unroll 8
      for (int j = 0; j < V; j += 2) {
        const int left = n - j * lanes();
        if (left <= 0)
          set(j, {fill, fill});
        else if (left < 2 * lanes())
          set(j, blend(E::inside(left), {v[j], v[j + 1]}, other));
      }
    }
  }

  HWY_INLINE void set(int j, Pair pair) {
    v[j] = pair.a;
    v[j + 1] = pair.b;
  }

  template <class F>
  HWY_INLINE void apply(const F& f) {
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) v[j] = f(v[j]);
  }

  template <class Join>
  HWY_INLINE Vector folded(const Join& join) const {
    Vector t[V];
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) t[j] = v[j];
#pragma GCC unroll 8
    for (int half = V / 2; half > 0; half /= 2)  // as a tree
#pragma GCC unroll 16
      for (int j = 0; j < half; ++j) t[j] = join(t[j], t[j + half]);
    return t[0];
  }
  HWY_INLINE float max() const {
    return reduce_max(folded([](Vector a, Vector b) ROWTUNE_STEP { return hn::Max(a, b); }));
  }
  HWY_INLINE float sum() const {
    return reduce_sum(folded([](Vector a, Vector b) ROWTUNE_STEP { return hn::Add(a, b); }));
  }
  HWY_INLINE float sum_of_squares() const {
    ShortRow squares = *this;
    squares.apply([](Vector x) ROWTUNE_STEP { return hn::Mul(x, x); });
    return squares.sum();
  }
};

/// G has operate<R>(tensors, first row): R rows at once. What remains of `end - begin` goes row by row.
template <class G, int R>
void short_rows(const Tensors& t, std::int64_t begin, std::int64_t end) {
  std::int64_t row = begin;
  for (; row + R <= end; row += R) G::template operate<R>(t, row);
  if constexpr (R > 1)
    for (; row < end; ++row) G::template operate<1>(t, row);
}

template <class E>
HWY_INLINE typename E::Memory* row_at(void* base, const Tensors& t, std::int64_t row) {
  return static_cast<typename E::Memory*>(base) + row * t.ld;
}
template <class E>
HWY_INLINE const typename E::Memory* row_at(const void* base, const Tensors& t, std::int64_t row) {
  return static_cast<const typename E::Memory*>(base) + row * t.ld;
}

/// The rows function for r and v, by a template Make<V>::type that has operate<R>.
template <template <int> class Make>
RowKernel short_kernel(const Config& config) {
  RowKernel kernel;
  const auto of_width = [&](auto width) {
    using G = typename Make<decltype(width)::value>::type;
    switch (config.rows_per_warp()) {
      case 1:
        kernel.rows = short_rows<G, 1>;
        break;
      case 4:
        if constexpr (decltype(width)::value <= 4) kernel.rows = short_rows<G, 4>;
        break;
    }
  };
  switch (config.vector_width()) {
    case 1:
      of_width(std::integral_constant<int, 1>());
      break;
    case 2:
      of_width(std::integral_constant<int, 2>());
      break;
    case 4:
      of_width(std::integral_constant<int, 4>());
      break;
    case 8:
      of_width(std::integral_constant<int, 8>());
      break;
    case 16:
      of_width(std::integral_constant<int, 16>());
      break;
  }
  return kernel;
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
