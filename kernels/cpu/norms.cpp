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

/// (x - mean) * rstd * weight + bias for write_slice.
template <class E, bool Centred, bool Weight, bool Bias>
struct Normalised {
  using T = typename E::Memory;
  const T* x;
  const T* w;
  const T* b;
  Vector mean, rstd;
  const T* next[2];  ///< inputs of the next row, to prefetch

  template <class... N>  // none for a whole pair, else the number of elements
  HWY_INLINE Pair operator()(std::int64_t i, N... n) const {
    if constexpr (sizeof...(n) == 0) {
      prefetch(next[0] + i);
      if constexpr (!Centred) prefetch(next[1] + i);
    }
    Pair v = each(E::load(x + i, n...), [&](Vector one) ROWTUNE_STEP {
      if constexpr (Centred) one = hn::Sub(one, mean);
      return hn::Mul(one, rstd);
    });
    if constexpr (Weight) {
      const Pair by = E::load(w + i, n...);
      if constexpr (Bias) {
        const Pair plus = E::load(b + i, n...);
        return {hn::MulAdd(v.a, by.a, plus.a), hn::MulAdd(v.b, by.b, plus.b)};
      }
      return {hn::Mul(v.a, by.a), hn::Mul(v.b, by.b)};
    }
    if constexpr (Bias) {
      const Pair plus = E::load(b + i, n...);
      return {hn::Add(v.a, plus.a), hn::Add(v.b, plus.b)};
    }
    return v;
  }
};

template <class E, int V, bool Bypass, bool Centred, bool Weight, bool Bias>
HWY_INLINE void write_norm(const Tensors& t, Slice s, const void* source, float mean, float rstd) {
  using T = typename E::Memory;
  const D d;
  const T* w = Weight ? static_cast<const T*>(t.weight) + s.begin : nullptr;
  const T* b = Bias ? static_cast<const T*>(t.bias) + s.begin : nullptr;
  T* y = at<E>(t.output, t, s);
  const std::int64_t n = s.end - s.begin;
  const T* next = at<E>(t.input, t, s) + t.ahead;
  const T* also = t.residual ? at<E>(t.residual, t, s) + t.ahead : next;
  write_slice<E, V, Bypass>(y, n, Bypass ? columns_to_alignment(y, n) : 0,
                            Normalised<E, Centred, Weight, Bias>{
                                at<E>(source, t, s), w, b, hn::Set(d, mean), hn::Set(d, rstd), {next, also}});
}

template <class E, int V, bool Bypass>
HWY_NOINLINE void write_layernorm(const Tensors& t, Slice s, float mean, float variance) {
  const float rstd = 1.0f / std::sqrt(clamp_variance(variance) + t.eps);
  if (t.weight && t.bias)
    write_norm<E, V, Bypass, true, true, true>(t, s, t.input, mean, rstd);
  else if (t.weight)
    write_norm<E, V, Bypass, true, true, false>(t, s, t.input, mean, rstd);
  else if (t.bias)
    write_norm<E, V, Bypass, true, false, true>(t, s, t.input, mean, rstd);
  else
    write_norm<E, V, Bypass, true, false, false>(t, s, t.input, mean, rstd);
}

template <class E, int V, bool Bypass>
HWY_NOINLINE void write_rmsnorm(const Tensors& t, Slice s, const void* source, float squares) {
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(t.cols) + t.eps);
  if (t.weight)
    write_norm<E, V, Bypass, false, true, false>(t, s, source, 0, rstd);
  else
    write_norm<E, V, Bypass, false, false, false>(t, s, source, 0, rstd);
}

struct MergesMoments {
  static Partial merge(Partial a, Partial b) {
    a.moments = moments_merge<float, HostMath>(a.moments, b.moments);
    return a;
  }
};

struct MergesSums {
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
    const auto take = [&](Pair v, int u) ROWTUNE_STEP {
      sum.add(u, v);
      squares.add_squares(u, v);
    };
    walk<V>(
        s.end - s.begin, 0, [&](std::int64_t i, int u) ROWTUNE_STEP { take(E::load(x + i), u); },
        [&](std::int64_t i, int count) ROWTUNE_STEP { take(E::load(x + i, count), 0); });  // what is not loaded is 0
    Partial p{};
    p.sums = {sum.sum(), squares.sum()};
    return p;
  }

  template <bool Bypass>
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    const auto n = static_cast<float>(t.cols);
    const float mean = whole.sums.sum / n;
    write_layernorm<E, V, Bypass>(t, s, mean, whole.sums.squares / n - mean * mean);
  }
};

/// Mean and M2 of n elements that a second read finds in cache.
template <class E, int V>
HWY_INLINE Moments<float> two_pass_moments(const typename E::Memory* x, std::int64_t n) {
  if (n == 0) return moments_empty<float>();
  Accumulators<V> sum(0);
  walk<V>(
      n, 0, [&](std::int64_t i, int u) ROWTUNE_STEP { sum.add(u, E::load(x + i)); },
      [&](std::int64_t i, int count) ROWTUNE_STEP { sum.add(0, E::load(x + i, count)); });
  const float mean = sum.sum() / static_cast<float>(n);
  const auto m = hn::Set(D(), mean);
  const auto distance = [&](Vector v) ROWTUNE_STEP { return hn::Sub(v, m); };
  Accumulators<V> m2(0);
  walk<V>(
      n, 0, [&](std::int64_t i, int u) ROWTUNE_STEP { m2.add_squares(u, each(E::load(x + i), distance)); },
      [&](std::int64_t i, int count)
          ROWTUNE_STEP { m2.add_squares(0, blend(E::inside(count), each(E::load(x + i, count), distance), 0)); });
  return {static_cast<int>(n), mean, m2.sum()};
}

template <class E, int V>
struct TwoPass : MergesMoments {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    Partial p{};
    p.moments = two_pass_moments<E, V>(at<E>(t.input, t, s), s.end - s.begin);
    return p;
  }
  template <bool Bypass>
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_layernorm<E, V, Bypass>(t, s, whole.moments.mean, whole.moments.m2 / static_cast<float>(t.cols));
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
#pragma GCC unroll 4
      for (int u = 0; u < V; u += 2) {
        const Pair pair = E::load(x + i + u * width);
        v[u] = pair.a;
        v[u + 1] = pair.b;
      }
      Vector sum[V];
#pragma GCC unroll 8
      for (int u = 0; u < V; ++u) sum[u] = v[u];
#pragma GCC unroll 4
      for (int half = V / 2; half > 0; half /= 2)
#pragma GCC unroll 8
        for (int u = 0; u < half; ++u) sum[u] = hn::Add(sum[u], sum[u + half]);
      const Vector block_mean = hn::Mul(sum[0], hn::Set(d, 1.0f / V));
      Vector block_m2 = hn::Zero(d);  // by itself: terms of one element vanish beside the m2 of millions
#pragma GCC unroll 8
      for (int u = 0; u < V; ++u) {
        const Vector distance = hn::Sub(v[u], block_mean);
        block_m2 = hn::MulAdd(distance, distance, block_m2);
      }
      const float share = static_cast<float>(V) / static_cast<float>(count + V);  // of the block in the union
      const Vector delta = hn::Sub(block_mean, mean);
      mean = hn::MulAdd(delta, hn::Set(d, share), mean);
      m2 = hn::Add(m2, hn::MulAdd(hn::Mul(delta, delta), hn::Set(d, share * static_cast<float>(count)), block_m2));
      count += V;
    }
    Partial p{};
    p.moments = two_pass_moments<E, 2>(x + i, n - i);
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
  template <bool Bypass>
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_layernorm<E, V, Bypass>(t, s, whole.moments.mean, whole.moments.m2 / static_cast<float>(t.cols));
  }
};

template <class E, int V>
HWY_INLINE Partial sum_of_squares(const typename E::Memory* x, std::int64_t n) {
  Accumulators<V> squares(0);
  walk<V>(
      n, 0, [&](std::int64_t i, int u) ROWTUNE_STEP { squares.add_squares(u, E::load(x + i)); },
      [&](std::int64_t i, int count) ROWTUNE_STEP { squares.add_squares(0, E::load(x + i, count)); });
  Partial p{};
  p.sums.squares = squares.sum();
  return p;
}

template <class E, int V>
struct RmsNorm : MergesSums {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    return sum_of_squares<E, V>(at<E>(t.input, t, s), s.end - s.begin);
  }
  template <bool Bypass>
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_rmsnorm<E, V, Bypass>(t, s, t.input, whole.sums.squares);
  }
};

/// residual + hidden, rounded to the dtype: what the norm sees is what the next layer will read.
template <class E, int V, bool Squares>
HWY_INLINE Partial add_residual(const Tensors& t, Slice s) {
  const auto* x = at<E>(t.input, t, s);
  const auto* r = at<E>(t.residual, t, s);
  auto* sum_out = at<E>(t.new_residual, t, s);
  Accumulators<V> squares(0);
  const auto sum_of = [](Pair p, Pair q) ROWTUNE_STEP { return Pair{hn::Add(p.a, q.a), hn::Add(p.b, q.b)}; };
  walk<V>(
      s.end - s.begin, 0,
      [&](std::int64_t i, int u) ROWTUNE_STEP {
        const Pair sum = E::store_and_read(sum_of(E::load(x + i), E::load(r + i)), sum_out + i);
        if constexpr (Squares) squares.add_squares(u, sum);
      },
      [&](std::int64_t i, int count) ROWTUNE_STEP {
        const Pair sum = E::store_and_read(sum_of(E::load(x + i, count), E::load(r + i, count)), sum_out + i, count);
        // What is not loaded is 0 + 0 and adds nothing.
        if constexpr (Squares) squares.add_squares(0, sum);
      });
  Partial p{};
  if constexpr (Squares) p.sums.squares = squares.sum();
  return p;
}

template <class E, int V>
struct FusedAddRmsNorm : MergesSums {
  static Partial reduce(const Tensors& t, Slice s, float*) { return add_residual<E, V, true>(t, s); }
  template <bool Bypass>
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_rmsnorm<E, V, Bypass>(t, s, t.new_residual, whole.sums.squares);
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

template <class E, int V, bool Bypass>
RowKernel norm_of(Operation op, const Config& config) {
  if (op == Operation::layernorm) {
    if (config.algorithm == "twopass") return kernel_of<TwoPass<E, V>, Bypass>();
    return config.algorithm == "welford" ? kernel_of<Welford<E, V>, Bypass>() : kernel_of<OnePass<E, V>, Bypass>();
  }
  if (op == Operation::rmsnorm) return kernel_of<RmsNorm<E, V>, Bypass>();
  if (config.algorithm != "unfused") return kernel_of<FusedAddRmsNorm<E, V>, Bypass>();
  RowKernel unfused = kernel_of<NormOfNewResidual<E, V>, Bypass>();
  unfused.prepare = add_rows<E, V>;
  return unfused;
}

template <class E, bool Bypass>
RowKernel norm_of_width(Operation op, const Config& config) {
  switch (config.vector_width()) {
    case 2:
      return norm_of<E, 2, Bypass>(op, config);
    case 4:
      return norm_of<E, 4, Bypass>(op, config);
    case 8:
      return norm_of<E, 8, Bypass>(op, config);
    default:
      return {};
  }
}

template <class E>
RowKernel norm_of_type(Operation op, const Config& config) {
  return config.get('n', 0) == 1 ? norm_of_width<E, true>(op, config) : norm_of_width<E, false>(op, config);
}

RowKernel norm_kernel(const Workload& w, const Config& config) {
  if (w.dtype == Dtype::f32) return norm_of_type<F32>(w.op, config);
  return w.dtype == Dtype::f16 ? norm_of_type<F16>(w.op, config) : norm_of_type<Bf16>(w.op, config);
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
