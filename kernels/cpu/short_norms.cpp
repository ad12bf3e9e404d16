// layernorm, rmsnorm and fused_add_rmsnorm of short rows on the cpu, algorithm `registers`. The variance is that of two
// passes: the second one costs no read.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/short_norms.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

#include "kernels/cpu/short_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

template <class E, Operation Op, int V>
struct ShortNorm {
  using Row = ShortRow<E, V>;
  using T = typename E::Memory;

  template <int R>
  static HWY_INLINE void operate(const Tensors& t, std::int64_t row) {
    const D d;
    const int n = static_cast<int>(t.cols);
    const auto count = static_cast<float>(n);
    Row x[R];
    float mean[R], squares[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T* input = row_at<E>(t.input, t, row + r);
      x[r] = Row::load(input, n);  // 0 outside
      if (t.ahead != 0) Row::prefetch(input + t.ahead, n);
      if constexpr (Op == Operation::fused_add_rmsnorm) {
        const T* added = row_at<E>(t.residual, t, row + r);
        const Row residual = Row::load(added, n);
        if (t.ahead != 0) Row::prefetch(added + t.ahead, n);
#pragma GCC unroll 16
        for (int j = 0; j < V; ++j) x[r].v[j] = hn::Add(x[r].v[j], residual.v[j]);
        x[r].store_and_read(row_at<E>(t.new_residual, t, row + r), n);
      }
    }
    if constexpr (Op == Operation::layernorm) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) mean[r] = x[r].sum() / count;
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const auto m = hn::Set(d, mean[r]);
        x[r].apply([&](Vector v) ROWTUNE_STEP { return hn::Sub(v, m); });
        x[r].fill_outside(n, 0);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) squares[r] = x[r].sum_of_squares();
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto rstd = hn::Set(d, 1.0f / std::sqrt(clamp_variance(squares[r] / count) + t.eps));
      x[r].apply([&](Vector v) ROWTUNE_STEP { return hn::Mul(v, rstd); });
    }
    if (t.weight) {
      const Row weight = Row::load(static_cast<const T*>(t.weight), n);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int j = 0; j < V; ++j) x[r].v[j] = hn::Mul(x[r].v[j], weight.v[j]);
    }
    if (Op == Operation::layernorm && t.bias) {
      const Row bias = Row::load(static_cast<const T*>(t.bias), n);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
        for (int j = 0; j < V; ++j) x[r].v[j] = hn::Add(x[r].v[j], bias.v[j]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) x[r].store(row_at<E>(t.output, t, row + r), n, t.bypass);
  }
};

template <class E, Operation Op>
struct ShortNormOf {
  template <int V>
  struct Make {
    using type = ShortNorm<E, Op, V>;
  };
};

template <class E>
RowKernel short_norm_of(Operation op, const Config& config) {
  if (op == Operation::layernorm) return short_kernel<ShortNormOf<E, Operation::layernorm>::template Make>(config);
  return op == Operation::rmsnorm ? short_kernel<ShortNormOf<E, Operation::rmsnorm>::template Make>(config)
                                  : short_kernel<ShortNormOf<E, Operation::fused_add_rmsnorm>::template Make>(config);
}

RowKernel short_norm_kernel(const Workload& w, const Config& config) {
  if (w.dtype == Dtype::f32) return short_norm_of<F32>(w.op, config);
  return w.dtype == Dtype::f16 ? short_norm_of<F16>(w.op, config) : short_norm_of<Bf16>(w.op, config);
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowtune::cpu {
HWY_EXPORT(short_norm_kernel);
RowKernel find_short_norm(const Workload& workload, const Config& config) {
  return HWY_DYNAMIC_DISPATCH(short_norm_kernel)(workload, config);
}
}  // namespace rowtune::cpu
#endif
