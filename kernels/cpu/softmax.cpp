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
  Accumulators<V> max(minus_infinity);
  walk<V>(
      n, 0, [&](std::int64_t i, int u) ROWTUNE_STEP { max.raise_to(u, E::load(x + i)); },
      [&](std::int64_t i, int count)
          ROWTUNE_STEP { max.raise_to(0, blend(E::inside(count), E::load(x + i, count), minus_infinity)); });
  return max.max();
}

/// The second read: exponentials once more, or logarithms.
template <class E, int V, bool Log, bool Bypass>
HWY_INLINE void write_again(const Tensors& t, Slice s, MaxSum<float> whole) {
  const D d;
  const auto origin = hn::Set(d, max_sum_origin<float, HostMath>(whole.max));
  const std::int64_t n = s.end - s.begin;
  const auto* x = at<E>(t.input, t, s);
  auto* y = at<E>(t.output, t, s);
  if constexpr (Log) {
    const auto log_sum = hn::Set(d, std::log(whole.sum));
    map_slice<E, V, Bypass>(x, y, n, [&](Vector v) ROWTUNE_STEP { return hn::Sub(hn::Sub(v, origin), log_sum); });
  } else {
    const auto scale = hn::Set(d, 1.0f / whole.sum);
    map_slice<E, V, Bypass>(x, y, n,
                            [&](Vector v) ROWTUNE_STEP { return hn::Mul(exp_negative(hn::Sub(v, origin)), scale); });
  }
}

/// Where exponentials are kept until the sum is known: in scratch, pair by pair in the order of the walk; or, fp32
/// only, where the output will stand. Both passes must walk alike.
struct Kept {
  float* base;
  bool in_output;
  int head;

  template <class E>
  static HWY_INLINE Kept of(const Tensors& t, Slice s, float* scratch) {
    auto* y = at<E>(t.output, t, s);
    // Whoever keeps apart may start where the output is aligned.
    if (scratch) return {scratch, false, columns_to_alignment(y, s.end - s.begin)};
    return {at<F32>(t.output, t, s), true, 0};
  }
  HWY_INLINE float* place(std::int64_t i) const { return base + (head == 0 || i == 0 ? i : i - head + 2 * lanes()); }
  HWY_INLINE void put(std::int64_t i, Pair e) const { F32::store(e, place(i)); }
  HWY_INLINE void put(std::int64_t i, Pair e, int n) const {
    if (in_output)
      F32::store(e, place(i), n);
    else
      F32::store(e, place(i));
  }
  HWY_INLINE Pair get(std::int64_t i) const { return F32::load(place(i)); }
  HWY_INLINE Pair get(std::int64_t i, int n) const { return in_output ? F32::load(place(i), n) : F32::load(place(i)); }
};

struct Scaled {
  const Kept& kept;
  Vector scale;
  template <class... N>
  HWY_INLINE Pair operator()(std::int64_t i, N... n) const {
    const Pair e = kept.get(i, n...);
    return {hn::Mul(e.a, scale), hn::Mul(e.b, scale)};
  }
};

template <class E, int V, bool Log, bool Keep, bool Safe>
struct ThreePass {
  static Partial reduce(const Tensors& t, Slice s, float* scratch) {
    const D d;
    const auto* x = at<E>(t.input, t, s);
    const std::int64_t n = s.end - s.begin, ahead = t.ahead;
    const float max = Safe ? slice_max<E, V>(x, n) : 0.0f;
    const auto origin = hn::Set(d, max_sum_origin<float, HostMath>(max));
    const auto exponential = [&](Vector v) ROWTUNE_STEP {
      if constexpr (Safe) return exp_negative(hn::Sub(v, origin));
      return exp_any(v);
    };
    const Kept kept = Keep ? Kept::of<E>(t, s, scratch) : Kept{};
    Accumulators<V> sum(0);
    walk<V>(
        n, kept.head,
        [&](std::int64_t i, int u) ROWTUNE_STEP {
          prefetch(x + ahead + i);
          const Pair e = each(E::load(x + i), exponential);
          if constexpr (Keep) kept.put(i, e);
          sum.add(u, e);
        },
        [&](std::int64_t i, int count) ROWTUNE_STEP {
          const Pair e = each(E::load(x + i, count), exponential);
          if constexpr (Keep) kept.put(i, e, count);
          sum.add(0, blend(E::inside(count), e, 0));
        });
    return of_exponentials(max, sum.sum());
  }

  static Partial merge(Partial a, Partial b) { return merge_exponentials(a, b); }

  template <bool Bypass>
  static void finish(const Tensors& t, Slice s, Partial mine, Partial whole, float* scratch) {
    const D d;
    const MaxSum<float> all = whole.exponentials;
    if constexpr (Keep) {
      const float from = mine.exponentials.max;
      // A slice of only -inf has origin 0 and exponentials 0: any finite factor does.
      const float factor = from == all.max ? 1.0f : std::exp(from - all.max);
      const Kept kept = Kept::of<E>(t, s, scratch);
      write_slice<E, V, Bypass>(at<E>(t.output, t, s), s.end - s.begin, kept.head,
                                Scaled{kept, hn::Set(d, factor / all.sum)});
    } else if constexpr (Safe) {
      write_again<E, V, Log, Bypass>(t, s, all);
    } else {
      static_assert(Log, "the unsafe softmax keeps its exponentials");
      write_again<E, V, Log, Bypass>(t, s, {0, all.sum});
    }
  }
};

template <class E, int V, bool Log>
struct Online {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    const D d;
    const auto* x = at<E>(t.input, t, s);
    const std::int64_t n = s.end - s.begin, width = 2 * lanes();
    Vector max = hn::Set(d, minus_infinity);  // each lane has its own (max, sum), merged like max_sum_merge
    Vector sum = hn::Zero(d);
    const auto take = [&](const Pair* v, int count) ROWTUNE_STEP {
      Vector new_max = max;
#pragma GCC unroll 4
      for (int u = 0; u < count; ++u) new_max = hn::Max(v[u].a, hn::Max(v[u].b, new_max));
      const auto origin = origin_of(new_max);
      sum = hn::Mul(sum, exp_negative(hn::Sub(max, origin)));
#pragma GCC unroll 4
      for (int u = 0; u < count; ++u)
        sum = hn::Add(sum, hn::Add(exp_negative(hn::Sub(v[u].a, origin)), exp_negative(hn::Sub(v[u].b, origin))));
      max = new_max;
    };
    std::int64_t i = 0;
    for (; i + V / 2 * width <= n; i += V / 2 * width) {
      Pair v[V / 2];
#pragma GCC unroll 4
      for (int u = 0; u < V / 2; ++u) v[u] = E::load(x + i + u * width);
      take(v, V / 2);
    }
    for (; i + width <= n; i += width) {
      const Pair v = E::load(x + i);
      take(&v, 1);
    }
    if (i < n) {
      const int count = static_cast<int>(n - i);
      const Pair v = blend(E::inside(count), E::load(x + i, count), minus_infinity);
      take(&v, 1);
    }
    const float whole_max = reduce_max(max);
    const auto origin = hn::Set(d, max_sum_origin<float, HostMath>(whole_max));
    return of_exponentials(whole_max, reduce_sum(hn::Mul(sum, exp_negative(hn::Sub(max, origin)))));
  }

  static Partial merge(Partial a, Partial b) { return merge_exponentials(a, b); }

  template <bool Bypass>
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    write_again<E, V, Log, Bypass>(t, s, whole.exponentials);
  }
};

template <class E, int V, bool Log, bool Bypass>
RowKernel softmax_of(const Config& config) {
  if (config.algorithm == "online") return kernel_of<Online<E, V, Log>, Bypass>();
  const bool safe = config.algorithm == "threepass";
  if constexpr (Log) {
    return safe ? kernel_of<ThreePass<E, V, Log, false, true>, Bypass>()
                : kernel_of<ThreePass<E, V, Log, false, false>, Bypass>();
  } else {
    const bool keep = !safe || config.get('k', 0) == 1;
    RowKernel kernel = !safe  ? kernel_of<ThreePass<E, V, Log, true, false>, Bypass>()
                       : keep ? kernel_of<ThreePass<E, V, Log, true, true>, Bypass>()
                              : kernel_of<ThreePass<E, V, Log, false, true>, Bypass>();
    kernel.keeps_row = keep && (Bypass || sizeof(typename E::Memory) < sizeof(float));
    return kernel;
  }
}

template <class E, bool Log, bool Bypass>
RowKernel softmax_of_width(const Config& config) {
  switch (config.vector_width()) {
    case 2:
      return softmax_of<E, 2, Log, Bypass>(config);
    case 4:
      return softmax_of<E, 4, Log, Bypass>(config);
    case 8:
      return softmax_of<E, 8, Log, Bypass>(config);
    default:
      return {};
  }
}

template <class E>
RowKernel softmax_of_type(bool log, const Config& config) {
  if (config.get('n', 0) == 1)
    return log ? softmax_of_width<E, true, true>(config) : softmax_of_width<E, false, true>(config);
  return log ? softmax_of_width<E, true, false>(config) : softmax_of_width<E, false, false>(config);
}

RowKernel softmax_kernel(Dtype dtype, bool log, const Config& config) {
  if (dtype == Dtype::f32) return softmax_of_type<F32>(log, config);
  return dtype == Dtype::f16 ? softmax_of_type<F16>(log, config) : softmax_of_type<Bf16>(log, config);
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
