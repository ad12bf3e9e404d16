// softmax and log_softmax of short rows on the cpu, algorithm `registers`: one read, one write, nothing between.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/short_softmax.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

#include "kernels/cpu/host_math.hpp"
#include "kernels/cpu/short_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

template <class E, bool Log, int V>
struct ShortSoftmax {
  template <int R>
  static HWY_INLINE void operate(const Tensors& t, std::int64_t row) {
    const D d;
    const int n = static_cast<int>(t.cols);
    ShortRow<E, V> x[R];
    float max[R], sum[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto* input = row_at<E>(t.input, t, row + r);
      x[r] = ShortRow<E, V>::load(input, n);
      if (t.ahead != 0) ShortRow<E, V>::prefetch(input + t.ahead, n);
      x[r].fill_outside(n, minus_infinity);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) max[r] = max_sum_origin<float, HostMath>(x[r].max());
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const auto origin = hn::Set(d, max[r]);
      x[r].apply([&](Vector v) ROWTUNE_STEP { return hn::Sub(v, origin); });
      ShortRow<E, V> e = x[r];
      e.apply([](Vector v) ROWTUNE_STEP { return exp_negative(v); });
      sum[r] = e.sum();
      if constexpr (!Log) x[r] = e;
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      if constexpr (Log) {
        const auto log_sum = hn::Set(d, std::log(sum[r]));
        x[r].apply([&](Vector v) ROWTUNE_STEP { return hn::Sub(v, log_sum); });
      } else {
        const auto scale = hn::Set(d, 1.0f / sum[r]);
        x[r].apply([&](Vector v) ROWTUNE_STEP { return hn::Mul(v, scale); });
      }
      x[r].store(row_at<E>(t.output, t, row + r), n, t.bypass);
    }
  }
};

template <class E, bool Log>
struct ShortSoftmaxOf {
  template <int V>
  struct Make {
    using type = ShortSoftmax<E, Log, V>;
  };
};

template <class E>
RowKernel short_softmax_of(bool log, const Config& config) {
  return log ? short_kernel<ShortSoftmaxOf<E, true>::template Make>(config)
             : short_kernel<ShortSoftmaxOf<E, false>::template Make>(config);
}

RowKernel short_softmax_kernel(Dtype dtype, bool log, const Config& config) {
  if (dtype == Dtype::f32) return short_softmax_of<F32>(log, config);
  return dtype == Dtype::f16 ? short_softmax_of<F16>(log, config) : short_softmax_of<Bf16>(log, config);
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowtune::cpu {
HWY_EXPORT(short_softmax_kernel);
RowKernel find_short_softmax(Dtype dtype, bool log, const Config& config) {
  return HWY_DYNAMIC_DISPATCH(short_softmax_kernel)(dtype, log, config);
}
}  // namespace rowtune::cpu
#endif
