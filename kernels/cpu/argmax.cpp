// argmax_logsumexp on the cpu, algorithm `scan`: the maximum, the sum of exponentials, and the first place of the
// maximum, by three looks at a row (or a slice of one) that stays in cache; the last ends where it has found it. A NaN
// is found by its sum, and only then looked for.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/argmax.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "kernels/cpu/host_math.hpp"
#include "kernels/cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

inline constexpr std::int64_t nowhere = std::numeric_limits<std::int64_t>::max();

/// Column of the first element that `is_it`(vector) marks, -1 when there is none.
template <class E, class IsIt>
HWY_INLINE std::int64_t first_place(const typename E::Memory* x, std::int64_t n, const IsIt& is_it) {
  const D d;
  const std::int64_t width = 2 * lanes();
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    const Pair v = E::load(x + i);
    if (!hn::AllFalse(d, hn::Or(is_it(v.a), is_it(v.b)))) break;
  }
  for (; i < n; ++i)
    if (hn::AllTrue(d, is_it(hn::Set(d, hn::GetLane(E::load(x + i, 1).a))))) return i;
  return -1;
}

template <class E, int V>
struct Scan {
  static Partial reduce(const Tensors& t, Slice s, float*) {
    const D d;
    const auto* x = at<E>(t.input, t, s);
    const std::int64_t n = s.end - s.begin;
    Partial p{};
    p.exponentials = {minus_infinity, 0};
    p.index = nowhere;
    if (n == 0) return p;
    Accumulators<V> max(minus_infinity);
    walk<V>(
        n, 0, [&](std::int64_t i, int u) ROWTUNE_STEP { max.raise_to(u, E::load(x + i)); },
        [&](std::int64_t i, int count)
            ROWTUNE_STEP { max.raise_to(0, blend(E::inside(count), E::load(x + i, count), minus_infinity)); });
    const float best = max.max();
    const auto origin = hn::Set(d, max_sum_origin<float, HostMath>(best));
    const auto exponential = [&](Vector v) ROWTUNE_STEP { return exp_negative(hn::Sub(v, origin)); };
    Accumulators<V> sum(0);
    walk<V>(
        n, 0, [&](std::int64_t i, int u) ROWTUNE_STEP { sum.add(u, each(E::load(x + i), exponential)); },
        [&](std::int64_t i, int count)
            ROWTUNE_STEP { sum.add(0, blend(E::inside(count), each(E::load(x + i, count), exponential), 0)); });
    p.exponentials = {best, sum.sum()};
    std::int64_t place = -1;
    if (std::isnan(p.exponentials.sum)) {  // of a NaN, or of a +inf
      place = first_place<E>(x, n, [](Vector v) ROWTUNE_STEP { return hn::IsNaN(v); });
      p.exponentials = {place >= 0 ? std::numeric_limits<float>::quiet_NaN() : best, 0};
    }
    const auto wanted = hn::Set(d, best);
    if (place < 0) place = first_place<E>(x, n, [&](Vector v) ROWTUNE_STEP { return hn::Eq(v, wanted); });
    p.index = s.begin + place;
    return p;
  }

  /// Whether a's element comes before b's: NaN above all, then the larger, then the first.
  static bool precedes(const Partial& a, const Partial& b) {
    const float x = a.exponentials.max, y = b.exponentials.max;
    if (std::isnan(x) != std::isnan(y)) return std::isnan(x);
    if (x != y && !std::isnan(x)) return x > y;
    return a.index < b.index;
  }
  /// The sum of a part relative to the best of all; 0 where it says nothing.
  static float sum_at(MaxSum<float> part, float best) {
    if (part.max == best) return part.sum;
    return part.max < best ? part.sum * std::exp(part.max - best) : 0.0f;
  }
  static Partial merge(Partial a, Partial b) {
    Partial p = precedes(a, b) ? a : b;
    const float best = p.exponentials.max;
    p.exponentials.sum = sum_at(a.exponentials, best) + sum_at(b.exponentials, best);
    return p;
  }

  template <bool Bypass>
  static void finish(const Tensors& t, Slice s, Partial, Partial whole, float*) {
    if (s.begin != 0) return;
    const MaxSum<float> all = whole.exponentials;
    const auto index = static_cast<std::int32_t>(whole.index);
    const float log_sum_exp = std::isfinite(all.max) ? all.max + std::log(all.sum) : all.max;
    char* const out = static_cast<char*>(t.output) + s.row * 8;
    std::memcpy(out, &index, 4);
    std::memcpy(out + 4, &log_sum_exp, 4);
  }
};

template <class E>
RowKernel argmax_of_type(const Config& config) {
  if (config.vector_width() == 4) return kernel_of<Scan<E, 4>, false>();
  return config.vector_width() == 8 ? kernel_of<Scan<E, 8>, false>() : RowKernel();
}

RowKernel argmax_kernel(Dtype dtype, const Config& config) {
  if (dtype == Dtype::f32) return argmax_of_type<F32>(config);
  return dtype == Dtype::f16 ? argmax_of_type<F16>(config) : argmax_of_type<Bf16>(config);
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowtune::cpu {
HWY_EXPORT(argmax_kernel);
RowKernel find_argmax(Dtype dtype, const Config& config) { return HWY_DYNAMIC_DISPATCH(argmax_kernel)(dtype, config); }
}  // namespace rowtune::cpu
#endif
