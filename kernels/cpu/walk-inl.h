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

/// full(i, u): the vector at column i, u in [0, V) names the accumulator. rest(i, n): the last n < lanes() columns.
template <int V, class Full, class Rest>
HWY_INLINE void walk(std::int64_t n, Full full, Rest rest) {
  const std::int64_t width = lanes();
  std::int64_t i = 0;
  for (; i + V * width <= n; i += V * width) {
#pragma GCC unroll 8
    for (int u = 0; u < V; ++u) full(i + u * width, u);
  }
  if constexpr (V > 1)
    for (; i + width <= n; i += width) full(i, 0);
  if (i < n) rest(i, static_cast<int>(n - i));
}

/// One accumulator for each of the V vectors of a step: sums do not wait for one another.
template <int V>
struct Accumulators {
  Vector v[V];
  explicit HWY_INLINE Accumulators(float start) {
#pragma GCC unroll 8
    for (int u = 0; u < V; ++u) v[u] = hn::Set(D(), start);
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
template <class K>
RowKernel kernel_of() {
  RowKernel kernel;
  kernel.reduce = K::reduce;
  kernel.merge = K::merge;
  kernel.finish = K::finish;
  kernel.keeps_row = K::keeps_row;
  return kernel;
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
