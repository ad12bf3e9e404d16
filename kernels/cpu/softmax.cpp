// softmax and log_softmax on the cpu, from the naive form to the one for short rows:
//   unsafe     no maximum: exp(x) / sum exp(x). Overflows beyond 88, vanishes below -87; shown, never chosen
//   threepass  maximum; sum of exp(x - max); write. k1 keeps the exponentials instead of computing them again
//   online     maximum and sum in one read (Milakov & Gimelshein 2018); write from a second read
//   registers  a short row is read once and stays in registers (softmax_registers.cpp)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "kernels/cpu/host_math.hpp"
#include "kernels/cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

inline Partial of_exponentials(float max, float sum) {
  Partial p{};
  p.exponentials = {max, sum};
  return p;
}

inline Partial merge_exponentials(Partial a, Partial b) {
  a.exponentials = max_sum_merge<float, HostMath>(a.exponentials, b.exponentials);
  return a;
}

template <class E, int V>
HWY_INLINE float slice_max(const typename E::Memory* x, std::int64_t n) {
  const D d;
  const float lowest = -HUGE_VALF;
  Accumulators<V> max(lowest);
  walk<V>(
      n, [&](std::int64_t i, int u) ROWTUNE_STEP { max.v[u] = hn::Max(E::load(x + i), max.v[u]); },
      [&](std::int64_t i, int count) ROWTUNE_STEP {
        const auto inside = hn::FirstN(d, static_cast<std::size_t>(count));
        max.v[0] = hn::Max(hn::IfThenElse(inside, E::load(x + i, count), hn::Set(d, lowest)), max.v[0]);
      });
  return max.max();
}

/// out = f(in), element by element.
template <class In, class Out, int V, class F>
HWY_INLINE void map_slice(const typename In::Memory* in, typename Out::Memory* out, std::int64_t n, F f) {
  walk<V>(
      n, [&](std::int64_t i, int) ROWTUNE_STEP { Out::store(f(In::load(in + i)), out + i); },
      [&](std::int64_t i, int count) ROWTUNE_STEP { Out::store(f(In::load(in + i, count)), out + i, count); });
}

/// The second read: exponentials once more, or logarithms.
template <class E, int V, bool Log>
HWY_INLINE void write_again(const Tensors& t, Slice s, MaxSum<float> whole) {
  const D d;
  const auto origin = hn::Set(d, max_sum_origin<float, HostMath>(whole.max));
  const std::int64_t n = s.end - s.begin;
  const auto* x = at<E>(t.input, t, s);
  auto* y = at<E>(t.output, t, s);
  if constexpr (Log) {
    const auto log_sum = hn::Set(d, std::log(whole.sum));
    map_slice<E, E, V>(x, y, n, [&](Vector v) ROWTUNE_STEP { return hn::Sub(hn::Sub(v, origin), log_sum); });
  } else {
    const auto scale = hn::Set(d, 1.0f / whole.sum);
    map_slice<E, E, V>(x, y, n,
                       [&](Vector v) ROWTUNE_STEP { return hn::Mul(exp_negative(hn::Sub(v, origin)), scale); });
  }
}

template <class E, int V, bool Log, bool Keep, bool Safe>
struct ThreePass {
  // fp32 exponentials are kept where the output will stand; narrower types would lose bits there.
  static constexpr bool keeps_row = Keep && sizeof(typename E::Memory) < sizeof(float);

  static HWY_INLINE Vector exponential(Vector x, Vector origin) {
    if constexpr (Safe) return exp_negative(hn::Sub(x, origin));
    return exp_any(x);
  }

  static HWY_INLINE float* kept_at(const Tensors& t, Slice s, float* kept) {
    if constexpr (keeps_row) return kept;
    return at<F32>(t.output, t, s);
  }

  static Partial reduce(const Tensors& t, Slice s, float* kept_row) {
    const D d;
    const auto* x = at<E>(t.input, t, s);
    const std::int64_t n = s.end - s.begin;
    const float max = Safe ? slice_max<E, V>(x, n) : 0.0f;
    const auto origin = hn::Set(d, max_sum_origin<float, HostMath>(max));
    float* kept = kept_at(t, s, kept_row);
    Accumulators<V> sum(0);
    walk<V>(
        n,
        [&](std::int64_t i, int u) ROWTUNE_STEP {
          const auto e = exponential(E::load(x + i), origin);
          if constexpr (Keep) F32::store(e, kept + i);
          sum.v[u] = hn::Add(sum.v[u], e);
        },
        [&](std::int64_t i, int count) ROWTUNE_STEP {
          const auto e = exponential(E::load(x + i, count), origin);
          if constexpr (Keep) F32::store(e, kept + i, count);
          sum.v[0] = hn::Add(sum.v[0], hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(count)), e));
        });
    return of_exponentials(max, sum.sum());
  }

  static Partial merge(Partial a, Partial b) { return merge_exponentials(a, b); }

  static void finish(const Tensors& t, Slice s, Partial mine, Partial whole, float* kept_row) {
    const D d;
    if constexpr (Keep) {
      const MaxSum<float> all = whole.exponentials;
      const float from = mine.exponentials.max;
      // A slice of only -inf has origin 0 and exponentials 0: any finite factor does.
      const float factor = from == all.max ? 1.0f : std::exp(from - all.max);
      const auto scale = hn::Set(d, factor / all.sum);
      map_slice<F32, E, V>(kept_at(t, s, kept_row), at<E>(t.output, t, s), s.end - s.begin,
                           [&](Vector v) ROWTUNE_STEP { return hn::Mul(v, scale); });
    } else if constexpr (Safe || Log) {
      write_again<E, V, Log>(t, s, whole.exponentials);
    } else {
      const auto scale = hn::Set(d, 1.0f / whole.exponentials.sum);
      map_slice<E, E, V>(at<E>(t.input, t, s), at<E>(t.output, t, s), s.end - s.begin,
                         [&](Vector v) ROWTUNE_STEP { return hn::Mul(exp_any(v), scale); });
    }
  }
};

template <class E, int V, bool Log>
struct Online {
  static constexpr bool keeps_row = false;

  static Partial reduce(const Tensors& t, Slice s, float*) {
    const D d;
    const auto* x = at<E>(t.input, t, s);
    const std::int64_t n = s.end - s.begin, width = lanes();
    const auto lowest = hn::Set(d, -HUGE_VALF);
    Vector max = lowest;  // each lane has its own state (max, sum): the merges below are max_sum_merge, lane by lane
    Vector sum = hn::Zero(d);
    const auto take = [&](const Vector* v, int count) ROWTUNE_STEP {
      Vector new_max = max;
#pragma GCC unroll 8
      for (int u = 0; u < count; ++u) new_max = hn::Max(v[u], new_max);
      const auto origin = origin_of(new_max);
      sum = hn::Mul(sum, exp_negative(hn::Sub(max, origin)));
#pragma GCC unroll 8
      for (int u = 0; u < count; ++u) sum = hn::Add(sum, exp_negative(hn::Sub(v[u], origin)));
      max = new_max;
    };
    std::int64_t i = 0;
    for (; i + V * width <= n; i += V * width) {
      Vector v[V];
#pragma GCC unroll 8
      for (int u = 0; u < V; ++u) v[u] = E::load(x + i + u * width);
      take(v, V);
    }
    for (; i + width <= n; i += width) {
      const Vector v = E::load(x + i);
      take(&v, 1);
    }
    if (i < n) {
      const int count = static_cast<int>(n - i);
      const auto inside = hn::FirstN(d, static_cast<std::size_t>(count));
      const Vector v = hn::IfThenElse(inside, E::load(x + i, count), lowest);
      take(&v, 1);
    }
    const float whole_max = reduce_max(max);
    const auto origin = hn::Set(d, max_sum_origin<float, HostMath>(whole_max));
    return of_exponentials(whole_max, reduce_sum(hn::Mul(sum, exp_negative(hn::Sub(max, origin)))));
  }

  static Partial merge(Partial a, Partial b) { return merge_exponentials(a, b); }

  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_again<E, V, Log>(t, s, whole.exponentials);
  }
};

template <class E, int V, bool Log>
RowKernel softmax_of(const Config& config) {
  const bool keep = config.get('k', 0) == 1;
  if (config.algorithm == "online") return kernel_of<Online<E, V, Log>>();
  const bool safe = config.algorithm == "threepass";
  if constexpr (Log) {
    return safe ? kernel_of<ThreePass<E, V, Log, false, true>>() : kernel_of<ThreePass<E, V, Log, false, false>>();
  } else {
    if (!safe) return kernel_of<ThreePass<E, V, Log, true, false>>();
    return keep ? kernel_of<ThreePass<E, V, Log, true, true>>() : kernel_of<ThreePass<E, V, Log, false, true>>();
  }
}

template <class E, bool Log>
RowKernel softmax_of_width(const Config& config) {
  switch (config.vector_width()) {
    case 1:
      return softmax_of<E, 1, Log>(config);
    case 2:
      return softmax_of<E, 2, Log>(config);
    case 4:
      return softmax_of<E, 4, Log>(config);
    case 8:
      return softmax_of<E, 8, Log>(config);
    default:
      return {};
  }
}

RowKernel softmax_kernel(Dtype dtype, bool log, const Config& config) {
  if (dtype == Dtype::f32) return log ? softmax_of_width<F32, true>(config) : softmax_of_width<F32, false>(config);
  if (dtype == Dtype::f16) return log ? softmax_of_width<F16, true>(config) : softmax_of_width<F16, false>(config);
  return log ? softmax_of_width<Bf16, true>(config) : softmax_of_width<Bf16, false>(config);
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowtune::cpu {
HWY_EXPORT(softmax_kernel);
RowKernel find_softmax(Dtype dtype, bool log, const Config& config) {
  return HWY_DYNAMIC_DISPATCH(softmax_kernel)(dtype, log, config);
}
}  // namespace rowtune::cpu
#endif
