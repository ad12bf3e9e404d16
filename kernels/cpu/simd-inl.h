// Per-target vocabulary of the cpu kernels: the three element types as fp32 vectors, partial accesses that touch
// nothing beyond a row, and exp. Included once per SIMD target (Highway's foreach_target), hence the toggled guard.
//
// Arithmetic is on vectors of fp32; f16 and bf16 are converted on the way in and out.

#if defined(ROWTUNE_CPU_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ROWTUNE_CPU_SIMD_INL_H_
#undef ROWTUNE_CPU_SIMD_INL_H_
#else
#define ROWTUNE_CPU_SIMD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<D>;              // uint32 lanes over the same vector
using Halves = hn::Repartition<std::uint16_t, D>;  // 16-bit lanes over the same vector: twice as many
using Vector = hn::Vec<D>;
using HalfOf = hn::Half<Halves>;  // as many 16-bit lanes as a vector has fp32 lanes

inline constexpr bool has_masked_access = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL;

HWY_INLINE int lanes() { return static_cast<int>(hn::Lanes(D())); }

// Partial access to the first n < Lanes elements. Other targets than AVX-512 implement MaskedLoad and BlendedStore as
// whole accesses plus a blend for some types: those read past the row and rewrite a neighbour's elements (a data race).
template <class Tag, class T>
HWY_INLINE hn::Vec<Tag> load_first(Tag d, const T* p, int n) {
  if constexpr (has_masked_access) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
  } else {
    alignas(64) T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
    std::memcpy(buffer, p, static_cast<std::size_t>(n) * sizeof(T));
    return hn::Load(d, buffer);
  }
}

template <class Tag, class T>
HWY_INLINE void store_first(hn::Vec<Tag> v, Tag d, T* p, int n) {
  if constexpr (has_masked_access) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
  } else {
    alignas(64) T buffer[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(v, d, buffer);
    std::memcpy(p, buffer, static_cast<std::size_t>(n) * sizeof(T));
  }
}

/// Two vectors of elements, the unit of all accesses. Which element is in which lane is up to the type: sums and maxima
/// do not care, and results go back by the same rule.
struct Pair {
  Vector a, b;
};

struct PairMask {
  hn::Mask<D> a, b;
};

inline constexpr float minus_infinity = -HUGE_VALF;

template <class F>
HWY_INLINE Pair each(Pair x, const F& f) {
  return {f(x.a), f(x.b)};
}

/// `other` in the lanes that are not elements.
HWY_INLINE Pair blend(PairMask inside, Pair x, float other) {
  const auto fill = hn::Set(D(), other);
  return {hn::IfThenElse(inside.a, x.a, fill), hn::IfThenElse(inside.b, x.b, fill)};
}

/// Elements 0 .. lanes - 1 are in a, the others in b.
HWY_INLINE PairMask inside_in_order(int n) {
  const int in_b = n > lanes() ? n - lanes() : 0;
  return {hn::FirstN(D(), static_cast<std::size_t>(n)), hn::FirstN(D(), static_cast<std::size_t>(in_b))};
}

struct F32 {
  using Memory = float;
  static HWY_INLINE Pair load(const float* p) { return {hn::LoadU(D(), p), hn::LoadU(D(), p + lanes())}; }
  static HWY_INLINE Pair load(const float* p, int n) {  // 0 < n < 2 lanes; what is not loaded is 0
    if (n <= lanes()) return {load_first(D(), p, n), hn::Zero(D())};
    return {hn::LoadU(D(), p), load_first(D(), p + lanes(), n - lanes())};
  }
  static HWY_INLINE PairMask inside(int n) { return inside_in_order(n); }
  static HWY_INLINE void store(Pair v, float* p) {
    hn::StoreU(v.a, D(), p);
    hn::StoreU(v.b, D(), p + lanes());
  }
  static HWY_INLINE void store(Pair v, float* p, int n) {
    if (n <= lanes()) return store_first(v.a, D(), p, n);
    hn::StoreU(v.a, D(), p);
    store_first(v.b, D(), p + lanes(), n - lanes());
  }
  /// Past the caches; p must be aligned to a vector.
  static HWY_INLINE void stream(Pair v, float* p) {
    hn::Stream(v.a, D(), p);
    hn::Stream(v.b, D(), p + lanes());
  }
  static HWY_INLINE Vector load_one(const float* p, int n) {  // 0 < n <= lanes
    return n == lanes() ? hn::LoadU(D(), p) : load_first(D(), p, n);
  }
  static HWY_INLINE void store_one(Vector v, float* p, int n) {
    if (n == lanes()) return hn::StoreU(v, D(), p);
    store_first(v, D(), p, n);
  }
  static HWY_INLINE Vector store_and_read_one(Vector v, float* p, int n) {
    store_one(v, p, n);
    return v;
  }
  /// Stores, and returns what a reader of the stored values will see. n: none, or the number of elements.
  template <class... N>
  static HWY_INLINE Pair store_and_read(Pair v, float* p, N... n) {
    store(v, p, n...);
    return v;
  }
};

/// Types of 16 bits differ in the conversion only: a whole vector of them is a pair.
template <class Convert>
struct Half {
  using Memory = std::uint16_t;
  static HWY_INLINE Pair load(const Memory* p) { return Convert::widen(hn::LoadU(Halves(), p)); }
  static HWY_INLINE Pair load(const Memory* p, int n) { return Convert::widen(load_first(Halves(), p, n)); }
  static HWY_INLINE PairMask inside(int n) { return Convert::inside(n); }
  static HWY_INLINE void store(Pair v, Memory* p) { hn::StoreU(Convert::narrow(v), Halves(), p); }
  static HWY_INLINE void store(Pair v, Memory* p, int n) { store_first(Convert::narrow(v), Halves(), p, n); }
  static HWY_INLINE void stream(Pair v, Memory* p) { hn::Stream(Convert::narrow(v), Halves(), p); }
  static HWY_INLINE Vector load_one(const Memory* p, int n) {  // in order
    return Convert::widen_one(n == lanes() ? hn::LoadU(HalfOf(), p) : load_first(HalfOf(), p, n));
  }
  static HWY_INLINE void store_one(Vector v, Memory* p, int n) { store_half(Convert::narrow_one(v), p, n); }
  static HWY_INLINE Vector store_and_read_one(Vector v, Memory* p, int n) {
    const auto half = Convert::narrow_one(v);
    store_half(half, p, n);
    return Convert::widen_one(half);
  }
  static HWY_INLINE Pair store_and_read(Pair v, Memory* p) {
    const auto halves = Convert::narrow(v);
    hn::StoreU(halves, Halves(), p);
    return Convert::widen(halves);
  }
  static HWY_INLINE Pair store_and_read(Pair v, Memory* p, int n) {
    const auto halves = Convert::narrow(v);
    store_first(halves, Halves(), p, n);
    return Convert::widen(halves);
  }

 private:
  static HWY_INLINE void store_half(hn::Vec<HalfOf> half, Memory* p, int n) {
    if (n == lanes()) return hn::StoreU(half, HalfOf(), p);
    store_first(half, HalfOf(), p, n);
  }
};

HWY_INLINE hn::Vec<HalfOf> low_halves(hn::Vec<Bits> v) {  // of values below 2^16
  return hn::DemoteTo(HalfOf(), hn::BitCast(hn::RebindToSigned<D>(), v));
}

/// bf16 is the upper half of an fp32: elements of even number go to a, those of odd number to b, and nothing has to
/// cross lanes.
struct ConvertBf16 {
  static HWY_INLINE Pair widen(hn::Vec<Halves> h) {
    const Bits du;
    const auto both = hn::BitCast(du, h);
    return {hn::BitCast(D(), hn::ShiftLeft<16>(both)), hn::BitCast(D(), hn::And(both, hn::Set(du, 0xffff0000u)))};
  }
  static HWY_INLINE PairMask inside(int n) {
    return {hn::FirstN(D(), static_cast<std::size_t>((n + 1) / 2)), hn::FirstN(D(), static_cast<std::size_t>(n / 2))};
  }
  static HWY_INLINE hn::Vec<Halves> narrow(Pair v) {
    const Bits du;
    const auto odd = hn::And(rounded(v.b), hn::Set(du, 0xffff0000u));
    return hn::BitCast(Halves(), hn::Or(odd, hn::ShiftRight<16>(rounded(v.a))));
  }
  static HWY_INLINE Vector widen_one(hn::Vec<HalfOf> h) {
    return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(Bits(), h)));
  }
  static HWY_INLINE hn::Vec<HalfOf> narrow_one(Vector v) { return low_halves(hn::ShiftRight<16>(rounded(v))); }

 private:
  /// Nearest even in the upper 16 bits, by integer arithmetic (Highway 1.0.3 truncates). A NaN stays a NaN because its
  /// lower 16 bits are 0: the NaNs of these kernels come from bf16 inputs, whose payloads arithmetic passes on, or are
  /// the processor's default one. Caring for others would cost three operations more, a tenth of a softmax.
  static HWY_INLINE hn::Vec<Bits> rounded(Vector v) {
    const Bits du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    return hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
  }
};

/// f16 keeps the order of its elements.
struct ConvertF16 {
  static HWY_INLINE Pair widen(hn::Vec<Halves> h) {
    return {widen_one(hn::LowerHalf(HalfOf(), h)), widen_one(hn::UpperHalf(HalfOf(), h))};
  }
  static HWY_INLINE PairMask inside(int n) { return inside_in_order(n); }
  static HWY_INLINE hn::Vec<Halves> narrow(Pair v) { return hn::Combine(Halves(), narrow_one(v.b), narrow_one(v.a)); }

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  static HWY_INLINE Vector widen_one(hn::Vec<HalfOf> h) {
    return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<hwy::float16_t, D>(), h));
  }
  static HWY_INLINE hn::Vec<HalfOf> narrow_one(Vector v) {
    return hn::BitCast(HalfOf(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
  }
#else
  // Without hardware conversion Highway 1.0.3 truncates and has neither infinities nor NaN. Rescaling the exponent by a
  // multiplication, and rounding subnormals by an addition, after F. Giesen, "Float->half variants" (2012).
  static HWY_INLINE Vector widen_one(hn::Vec<HalfOf> h) {
    const Bits du;
    const auto bits = hn::PromoteTo(du, h);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fff)));
    const auto scaled = hn::BitCast(du, hn::Mul(hn::BitCast(D(), magnitude), hn::Set(D(), 0x1p112f)));
    const auto is_special = hn::Eq(hn::And(bits, hn::Set(du, 0x7c00)), hn::Set(du, 0x7c00));
    const auto special = hn::Or(magnitude, hn::Set(du, 0x7f800000));
    return hn::BitCast(D(), hn::Or(sign, hn::IfThenElse(is_special, special, scaled)));
  }
  static HWY_INLINE hn::Vec<HalfOf> narrow_one(Vector v) {
    const Bits du;
    const D d;
    const auto all = hn::BitCast(du, v);
    const auto sign = hn::And(all, hn::Set(du, 0x80000000));
    const auto bits = hn::Xor(all, sign);
    const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
    const auto normal =
        hn::ShiftRight<13>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0xc8000fff))));  // exponent - 112, + half - 1
    const auto magic = hn::Set(d, 0.5f);  // its ulp in fp32 is the smallest f16
    const auto subnormal = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, bits), magic)), hn::BitCast(du, magic));
    const auto magnitude = hn::BitCast(d, bits);
    const auto is_small = hn::RebindMask(du, hn::Lt(magnitude, hn::Set(d, 0x1p-14f)));
    const auto is_large = hn::RebindMask(du, hn::Ge(magnitude, hn::Set(d, 65520.0f)));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
    auto half = hn::IfThenElse(is_small, subnormal, normal);
    half = hn::IfThenElse(is_large, hn::Set(du, 0x7c00), half);
    half = hn::IfThenElse(is_nan, hn::Set(du, 0x7e00), half);
    return low_halves(hn::Or(half, hn::ShiftRight<16>(sign)));
  }
#endif
};

using F16 = Half<ConvertF16>;
using Bf16 = Half<ConvertBf16>;

/// x, or `low` where x is lower; a NaN stays a NaN.
HWY_INLINE Vector at_least(float low, Vector x) {
  const auto limit = hn::Set(D(), low);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  return hn::Max(limit, x);  // maxps gives its second operand when either is a NaN
#else
  return hn::IfThenElse(hn::Lt(x, limit), limit, x);
#endif
}

/// x log2(e) - n, where n is the integer next to it: to about 2^-25.
HWY_INLINE Vector fraction_of(Vector x, Vector n) {
  const D d;
#if !HWY_NATIVE_FMA
  // Without a fused multiply-add the product would be rounded first. n times the upper word of ln 2 is exact (10 bits).
  auto rest = hn::Sub(x, hn::Mul(n, hn::Set(d, 0.693359375f)));
  rest = hn::Sub(rest, hn::Mul(n, hn::Set(d, -2.12194440e-4f)));
  return hn::Mul(rest, hn::Set(d, 1.44269502162933349609375f));
#else
  const auto upper = hn::MulSub(x, hn::Set(d, 1.44269502162933349609375f), n);
  return hn::MulAdd(x, hn::Set(d, 1.92596303350e-8f), upper);  // the lower word of log2(e)
#endif
}

/// exp(x) for x <= 0 (and up to 88): at most 1.2 ulp off (1.4 without fma); exp(0) = 1; exactly 0 below -87.7 and at
/// -inf, a normal number or 0 elsewhere; NaN stays NaN. 2^n * 2^f with n = round(x log2 e) and |f| <= 1/2; 2^f = 1 + f
/// q(f), q minimax of degree 5 (0.05 u of relative error).
HWY_INLINE Vector exp_negative(Vector x) {
  const D d;
  // Adding 1.5 * 2^23 + 127 rounds to an integer and leaves the biased exponent in the low bits; at n = -127, where -88
  // ends up, that is the exponent of 0.
  const auto magic = hn::Set(d, 12582912.0f + 127.0f);
  const auto log2e = hn::Set(d, 1.44269502162933349609375f);
  x = at_least(-88.0f, x);
  const auto shifted = hn::MulAdd(x, log2e, magic);
  const auto n = hn::Sub(shifted, magic);
  const auto f = fraction_of(x, n);
  auto p = hn::Set(d, 0.000155946770151f);
  p = hn::MulAdd(p, f, hn::Set(d, 0.00134066438475f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.00961769297614f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.0555031055121f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.240226527829f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693147214968f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  // Multiplying, rather than adding to the exponent, keeps a NaN.
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(Bits(), shifted))));
}

/// exp for any x: +inf beyond 88.7.
HWY_INLINE Vector exp_any(Vector x) {
  const D d;
  const auto limit = hn::Set(d, 89.0f);  // its power of two is 2^128: +inf
  return exp_negative(hn::IfThenElse(hn::Gt(x, limit), limit, x));
}

/// 0 for -inf, so that -inf - origin = -inf rather than NaN; see max_sum_origin.
HWY_INLINE Vector origin_of(Vector max) {
  const D d;
  return hn::IfThenZeroElse(hn::Eq(max, hn::Set(d, -HUGE_VALF)), max);
}

HWY_INLINE float reduce_max(Vector v) { return hn::GetLane(hn::MaxOfLanes(D(), v)); }
HWY_INLINE float reduce_sum(Vector v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
