// layernorm, rmsnorm and fused_add_rmsnorm on the cpu. Statistics of a row, from the form to warn of to the sound ones:
//   onepass   layernorm: mean of squares minus square of the mean; cancels when the mean is large: shown, never chosen.
//             The rms norms need no more than the mean of squares, which is sound
//   twopass   the mean, then the squared distances from it; the second pass finds the row in cache
//   welford   one read: v vectors form a block with its own mean, merged by Chan's rule; with v1 it is Welford's update
//   unfused   the sum of hidden and residual for the whole tensor first, then rmsnorm: what fusing saves
// The sources are named in rowtune/algebra.cuh.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norms.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/host_math.hpp"
#include "kernels/cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

HWY_INLINE hn::Mask<D> inside(int count) { return hn::FirstN(D(), static_cast<std::size_t>(count)); }

/// y = (x - mean) * rstd * weight + bias, from `source` to the output.
template <class E, int V, bool Centred, bool Weight, bool Bias>
HWY_INLINE void write_norm(const Tensors& t, Slice s, const void* source, float mean, float rstd) {
  const D d;
  const auto m = hn::Set(d, mean), scale = hn::Set(d, rstd);
  const auto* x = at<E>(source, t, s);
  auto* y = at<E>(t.output, t, s);
  const auto* w = static_cast<const typename E::Memory*>(t.weight) + (Weight ? s.begin : 0);
  const auto* b = static_cast<const typename E::Memory*>(t.bias) + (Bias ? s.begin : 0);
  const auto normalised = [&](Vector v) ROWTUNE_STEP { return hn::Mul(Centred ? hn::Sub(v, m) : v, scale); };
  walk<V>(
      s.end - s.begin,
      [&](std::int64_t i, int) ROWTUNE_STEP {
        Vector v = normalised(E::load(x + i));
        if constexpr (Weight && Bias) v = hn::MulAdd(v, E::load(w + i), E::load(b + i));
        if constexpr (Weight && !Bias) v = hn::Mul(v, E::load(w + i));
        if constexpr (!Weight && Bias) v = hn::Add(v, E::load(b + i));
        E::store(v, y + i);
      },
      [&](std::int64_t i, int count) ROWTUNE_STEP {
        Vector v = normalised(E::load(x + i, count));
        if constexpr (Weight && Bias) v = hn::MulAdd(v, E::load(w + i, count), E::load(b + i, count));
        if constexpr (Weight && !Bias) v = hn::Mul(v, E::load(w + i, count));
        if constexpr (!Weight && Bias) v = hn::Add(v, E::load(b + i, count));
        E::store(v, y + i, count);
      });
}

template <class E, int V>
HWY_NOINLINE void write_layernorm(const Tensors& t, Slice s, float mean, float variance) {
  const float rstd = 1.0f / std::sqrt(clamp_variance(variance) + t.eps);
  if (t.weight && t.bias)
    write_norm<E, V, true, true, true>(t, s, t.input, mean, rstd);
  else if (t.weight)
    write_norm<E, V, true, true, false>(t, s, t.input, mean, rstd);
  else if (t.bias)
    write_norm<E, V, true, false, true>(t, s, t.input, mean, rstd);
  else
    write_norm<E, V, true, false, false>(t, s, t.input, mean, rstd);
}

template <class E, int V>
HWY_NOINLINE void write_rmsnorm(const Tensors& t, Slice s, const void* source, float squares) {
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(t.cols) + t.eps);
  if (t.weight)
    write_norm<E, V, false, true, false>(t, s, source, 0, rstd);
  else
    write_norm<E, V, false, false, false>(t, s, source, 0, rstd);
}

struct MergesMoments {
  static constexpr bool keeps_row = false;
  static Partial merge(Partial a, Partial b) {
    a.moments = moments_merge<float, HostMath>(a.moments, b.moments);
    return a;
  }
};

struct MergesSums {
  static constexpr bool keeps_row = false;
  static Partial merge(Partial a, Partial b) {
    a.sums = sums_merge<float>(a.sums, b.sums);
    return a;
  }
};

template <class E, int V>
struct OnePass : MergesSums {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    const auto* x = at<E>(t.input, t, s);
    Accumulators<V> sum(0), squares(0);
    walk<V>(
        s.end - s.begin,
        [&](std::int64_t i, int u) ROWTUNE_STEP {
          const Vector v = E::load(x + i);
          sum.v[u] = hn::Add(sum.v[u], v);
          squares.v[u] = hn::MulAdd(v, v, squares.v[u]);
        },
        [&](std::int64_t i, int count) ROWTUNE_STEP {  // what is not loaded is 0
          const Vector v = E::load(x + i, count);
          sum.v[0] = hn::Add(sum.v[0], v);
          squares.v[0] = hn::MulAdd(v, v, squares.v[0]);
        });
    Partial p{};
    p.sums = {sum.sum(), squares.sum()};
    return p;
  }

  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    const auto n = static_cast<float>(t.cols);
    const float mean = whole.sums.sum / n;
    write_layernorm<E, V>(t, s, mean, whole.sums.squares / n - mean * mean);
  }
};

/// Mean and M2 of n elements that a second read finds in cache.
template <class E, int V>
HWY_INLINE Moments<float> two_pass_moments(const typename E::Memory* x, std::int64_t n) {
  if (n == 0) return moments_empty<float>();
  const D d;
  Accumulators<V> sum(0);
  walk<V>(
      n, [&](std::int64_t i, int u) ROWTUNE_STEP { sum.v[u] = hn::Add(sum.v[u], E::load(x + i)); },
      [&](std::int64_t i, int count) ROWTUNE_STEP { sum.v[0] = hn::Add(sum.v[0], E::load(x + i, count)); });
  const float mean = sum.sum() / static_cast<float>(n);
  const auto m = hn::Set(d, mean);
  Accumulators<V> m2(0);
  walk<V>(
      n,
      [&](std::int64_t i, int u) ROWTUNE_STEP {
        const Vector distance = hn::Sub(E::load(x + i), m);
        m2.v[u] = hn::MulAdd(distance, distance, m2.v[u]);
      },
      [&](std::int64_t i, int count) ROWTUNE_STEP {
        const Vector distance = hn::IfThenElseZero(inside(count), hn::Sub(E::load(x + i, count), m));
        m2.v[0] = hn::MulAdd(distance, distance, m2.v[0]);
      });
  return {static_cast<int>(n), mean, m2.sum()};
}

template <class E, int V>
struct TwoPass : MergesMoments {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    Partial p{};
    p.moments = two_pass_moments<E, V>(at<E>(t.input, t, s), s.end - s.begin);
    return p;
  }
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_layernorm<E, V>(t, s, whole.moments.mean, whole.moments.m2 / static_cast<float>(t.cols));
  }
};

template <class E, int V>
struct Welford : MergesMoments {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    const D d;
    const auto* x = at<E>(t.input, t, s);
    const std::int64_t n = s.end - s.begin, width = lanes();
    // Every lane has its own state; the lanes' counts are equal, so one integer serves them all.
    Vector mean = hn::Zero(d), m2 = hn::Zero(d);
    int count = 0;
    std::int64_t i = 0;
    for (; i + V * width <= n; i += V * width) {
      Vector v[V];
#pragma GCC unroll 8
      for (int u = 0; u < V; ++u) v[u] = E::load(x + i + u * width);
      Vector block_mean = v[0];
      if constexpr (V > 1) {
        Vector sum[V];
#pragma GCC unroll 8
        for (int u = 0; u < V; ++u) sum[u] = v[u];
#pragma GCC unroll 4
        for (int half = V / 2; half > 0; half /= 2)
#pragma GCC unroll 8
          for (int u = 0; u < half; ++u) sum[u] = hn::Add(sum[u], sum[u + half]);
        block_mean = hn::Mul(sum[0], hn::Set(d, 1.0f / V));
#pragma GCC unroll 8
        for (int u = 0; u < V; ++u) {
          const Vector distance = hn::Sub(v[u], block_mean);
          m2 = hn::MulAdd(distance, distance, m2);
        }
      }
      const float share = static_cast<float>(V) / static_cast<float>(count + V);  // of the block in the union
      const Vector delta = hn::Sub(block_mean, mean);
      mean = hn::MulAdd(delta, hn::Set(d, share), mean);
      m2 = hn::MulAdd(hn::Mul(delta, delta), hn::Set(d, share * static_cast<float>(count)), m2);
      count += V;
    }
    Partial p{};
    p.moments = two_pass_moments<E, 1>(x + i, n - i);
    if (count > 0) {
      // Chan's rule for many sides of one count: M2 = sum of M2 + count * sum of squared distances of the means.
      const float whole_mean = reduce_sum(mean) / static_cast<float>(width);
      const Vector distance = hn::Sub(mean, hn::Set(d, whole_mean));
      const float whole_m2 =
          reduce_sum(hn::MulAdd(hn::Mul(distance, distance), hn::Set(d, static_cast<float>(count)), m2));
      const Moments<float> blocks{count * static_cast<int>(width), whole_mean, whole_m2};
      p.moments = moments_merge<float, HostMath>(blocks, p.moments);
    }
    return p;
  }
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_layernorm<E, V>(t, s, whole.moments.mean, whole.moments.m2 / static_cast<float>(t.cols));
  }
};

template <class E, int V>
HWY_INLINE Partial sum_of_squares(const typename E::Memory* x, std::int64_t n) {
  Accumulators<V> squares(0);
  walk<V>(
      n,
      [&](std::int64_t i, int u) ROWTUNE_STEP {
        const Vector v = E::load(x + i);
        squares.v[u] = hn::MulAdd(v, v, squares.v[u]);
      },
      [&](std::int64_t i, int count) ROWTUNE_STEP {
        const Vector v = E::load(x + i, count);
        squares.v[0] = hn::MulAdd(v, v, squares.v[0]);
      });
  Partial p{};
  p.sums.squares = squares.sum();
  return p;
}

template <class E, int V>
struct RmsNorm : MergesSums {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    return sum_of_squares<E, V>(at<E>(t.input, t, s), s.end - s.begin);
  }
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_rmsnorm<E, V>(t, s, t.input, whole.sums.squares);
  }
};

/// residual + hidden, rounded to the dtype: what the norm sees is what the next layer will read.
template <class E, int V, bool Squares>
HWY_INLINE Partial add_residual(const Tensors& t, Slice s) {
  const auto* x = at<E>(t.input, t, s);
  const auto* r = at<E>(t.residual, t, s);
  auto* sum_out = at<E>(t.new_residual, t, s);
  Accumulators<V> squares(0);
  walk<V>(
      s.end - s.begin,
      [&](std::int64_t i, int u) ROWTUNE_STEP {
        const Vector sum = E::store_and_read(hn::Add(E::load(x + i), E::load(r + i)), sum_out + i);
        if constexpr (Squares) squares.v[u] = hn::MulAdd(sum, sum, squares.v[u]);
      },
      [&](std::int64_t i, int count) ROWTUNE_STEP {
        const Vector sum = E::store_and_read(hn::Add(E::load(x + i, count), E::load(r + i, count)), sum_out + i, count);
        if constexpr (Squares) squares.v[0] = hn::MulAdd(sum, sum, squares.v[0]);
      });
  Partial p{};
  if constexpr (Squares) p.sums.squares = squares.sum();
  return p;
}

template <class E, int V>
struct FusedAddRmsNorm : MergesSums {
  static Partial reduce(const Tensors& t, Slice s, float*) { return add_residual<E, V, true>(t, s); }
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_rmsnorm<E, V>(t, s, t.new_residual, whole.sums.squares);
  }
};

template <class E, int V>
struct NormOfNewResidual : FusedAddRmsNorm<E, V> {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    return sum_of_squares<E, V>(at<E>(t.new_residual, t, s), s.end - s.begin);
  }
};

template <class E, int V>
void add_rows(const Tensors& t, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) add_residual<E, V, false>(t, {row, 0, t.cols});
}

template <class E, int V>
RowKernel norm_of(Operation op, const Config& config) {
  if (op == Operation::layernorm) {
    if (config.algorithm == "twopass") return kernel_of<TwoPass<E, V>>();
    return config.algorithm == "welford" ? kernel_of<Welford<E, V>>() : kernel_of<OnePass<E, V>>();
  }
  if (op == Operation::rmsnorm) return kernel_of<RmsNorm<E, V>>();
  if (config.algorithm != "unfused") return kernel_of<FusedAddRmsNorm<E, V>>();
  RowKernel unfused = kernel_of<NormOfNewResidual<E, V>>();
  unfused.prepare = add_rows<E, V>;
  return unfused;
}

template <class E>
RowKernel norm_of_width(Operation op, const Config& config) {
  switch (config.vector_width()) {
    case 1:
      return norm_of<E, 1>(op, config);
    case 2:
      return norm_of<E, 2>(op, config);
    case 4:
      return norm_of<E, 4>(op, config);
    case 8:
      return norm_of<E, 8>(op, config);
    default:
      return {};
  }
}

RowKernel norm_kernel(const Workload& w, const Config& config) {
  if (w.dtype == Dtype::f32) return norm_of_width<F32>(w.op, config);
  return w.dtype == Dtype::f16 ? norm_of_width<F16>(w.op, config) : norm_of_width<Bf16>(w.op, config);
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowtune::cpu {
HWY_EXPORT(norm_kernel);
RowKernel find_norm(const Workload& workload, const Config& config) {
  return HWY_DYNAMIC_DISPATCH(norm_kernel)(workload, config);
}
}  // namespace rowtune::cpu
#endif
