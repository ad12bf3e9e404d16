// How the cpu kernels walk over a slice: V vectors per step, then single vectors, then the masked rest.

#if defined(ROWTUNE_CPU_WALK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROWTUNE_CPU_WALK_INL_H_
#undef ROWTUNE_CPU_WALK_INL_H_
#else
#define ROWTUNE_CPU_WALK_INL_H_
#endif

#include "kernels/cpu/kernel.hpp"
#include "kernels/cpu/simd-inl.h"

// A lambda does not inherit the target of the function around it, and a call per vector would cost more than its body.
#undef ROWTUNE_STEP
#define ROWTUNE_STEP HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

/// full(i, u): the pair at column i, u in [0, V / 2) names the accumulators. part(i, n): n < 2 lanes() columns from i:
/// the last ones, and the first `head` ones where a pass wants to start at an aligned address.
template <int V, class Full, class Part>
HWY_INLINE void walk(std::int64_t n, int head, Full full, Part part) {
  const std::int64_t width = 2 * lanes();
  std::int64_t i = 0;
  if (head > 0) {
    part(std::int64_t{0}, head);
    i = head;
  }
  for (; i + V / 2 * width <= n; i += V / 2 * width) {
#pragma GCC unroll 4
    for (int u = 0; u < V / 2; ++u) full(i + u * width, u);
  }
  if constexpr (V > 2)
    for (; i + width <= n; i += width) full(i, 0);
  if (i < n) part(i, static_cast<int>(n - i));
}

/// Columns of n before the first at an address that is aligned to a vector.
template <class T>
HWY_INLINE int columns_to_alignment(const T* p, std::int64_t n) {
  const auto vector = static_cast<std::uintptr_t>(lanes()) * sizeof(float);
  const auto past = reinterpret_cast<std::uintptr_t>(p) % vector;
  const auto columns = static_cast<std::int64_t>(past == 0 ? 0 : (vector - past) / sizeof(T));
  return static_cast<int>(columns < n ? columns : n);
}

/// y[i ...] = value(i) for whole pairs, value(i, n) for n elements.
/// Bypass: stores go past the caches, which saves reading the lines that they replace. They must be aligned.
template <class E, int V, bool Bypass, class Value>
HWY_INLINE void write_slice(typename E::Memory* y, std::int64_t n, int head, const Value& value) {
  walk<V>(
      n, head,
      [&](std::int64_t i, int) ROWTUNE_STEP {
        if constexpr (Bypass)
          E::stream(value(i), y + i);
        else
          E::store(value(i), y + i);
      },
      [&](std::int64_t i, int count) ROWTUNE_STEP { E::store(value(i, count), y + i, count); });
}

/// y = f(x), element by element.
template <class E, class F>
struct Mapped {
  const typename E::Memory* x;
  const F& f;
  template <class... N>
  HWY_INLINE Pair operator()(std::int64_t i, N... n) const {
    return each(E::load(x + i, n...), f);
  }
};

template <class E, int V, bool Bypass, class F>
HWY_INLINE void map_slice(const typename E::Memory* x, typename E::Memory* y, std::int64_t n, const F& f) {
  write_slice<E, V, Bypass>(y, n, Bypass ? columns_to_alignment(y, n) : 0, Mapped<E, F>{x, f});
}

/// Asks for the pair at p, so that the next row arrives while this one is computed. A hint never faults.
template <class T>
HWY_INLINE void prefetch(const T* p) {
  __builtin_prefetch(p);
  if constexpr (sizeof(T) == sizeof(float)) __builtin_prefetch(p + lanes());
}

/// One accumulator for each of the V vectors of a step: sums do not wait for one another.
template <int V>
struct Accumulators {
  Vector v[V];
  explicit HWY_INLINE Accumulators(float start) {
#pragma GCC unroll 8
    for (int u = 0; u < V; ++u) v[u] = hn::Set(D(), start);
  }
  HWY_INLINE void add(int u, Pair x) {
    v[2 * u] = hn::Add(v[2 * u], x.a);
    v[2 * u + 1] = hn::Add(v[2 * u + 1], x.b);
  }
  HWY_INLINE void add_squares(int u, Pair x) {
    v[2 * u] = hn::MulAdd(x.a, x.a, v[2 * u]);
    v[2 * u + 1] = hn::MulAdd(x.b, x.b, v[2 * u + 1]);
  }
  HWY_INLINE void raise_to(int u, Pair x) {
    v[2 * u] = hn::Max(x.a, v[2 * u]);
    v[2 * u + 1] = hn::Max(x.b, v[2 * u + 1]);
  }
  HWY_INLINE float sum() const {
    return reduce_sum(folded([](Vector a, Vector b) ROWTUNE_STEP { return hn::Add(a, b); }));
  }
  HWY_INLINE float max() const {
    return reduce_max(folded([](Vector a, Vector b) ROWTUNE_STEP { return hn::Max(a, b); }));
  }

 private:
  template <class Join>
  HWY_INLINE Vector folded(Join join) const {  // as a tree
    Vector t[V];
#pragma GCC unroll 8
    for (int u = 0; u < V; ++u) t[u] = v[u];
#pragma GCC unroll 4
    for (int half = V / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int u = 0; u < half; ++u) t[u] = join(t[u], t[u + half]);
    return t[0];
  }
};

template <class E>
HWY_INLINE const typename E::Memory* at(const void* base, const Tensors& t, Slice s) {
  return static_cast<const typename E::Memory*>(base) + s.row * t.ld + s.begin;
}
template <class E>
HWY_INLINE typename E::Memory* at(void* base, const Tensors& t, Slice s) {
  return static_cast<typename E::Memory*>(base) + s.row * t.ld + s.begin;
}

/// A kernel class K has reduce, merge and finish over slices; a whole row is one slice.
template <class K, bool Bypass>
RowKernel kernel_of() {
  RowKernel kernel;
  kernel.reduce = K::reduce;
  kernel.merge = K::merge;
  kernel.finish = K::template finish<Bypass>;
  return kernel;
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
