// Per-target vocabulary of the cpu kernels: the three element types as fp32 vectors, partial accesses that touch
// nothing beyond a row, and exp. Included once per SIMD target (Highway's foreach_target), hence the toggled guard.
//
// A vector always has Lanes(d) fp32 lanes; f16 and bf16 are converted on the way in and out.

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
using Bits = hn::RebindToUnsigned<D>;         // uint32 lanes over the same vector
using Halves = hn::Rebind<std::uint16_t, D>;  // as many lanes, 16 bits each
using Vector = hn::Vec<D>;

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

struct F32 {
  using Memory = float;
  static HWY_INLINE Vector load(const float* p) { return hn::LoadU(D(), p); }
  static HWY_INLINE Vector load(const float* p, int n) { return load_first(D(), p, n); }
  static HWY_INLINE void store(Vector v, float* p) { hn::StoreU(v, D(), p); }
  static HWY_INLINE void store(Vector v, float* p, int n) { store_first(v, D(), p, n); }
  /// Stores, and returns what a reader of the stored values will see.
  static HWY_INLINE Vector store_and_read(Vector v, float* p) {
    store(v, p);
    return v;
  }
  static HWY_INLINE Vector store_and_read(Vector v, float* p, int n) {
    store(v, p, n);
    return v;
  }
};

/// Types of 16 bits differ in the conversion only.
template <class Convert>
struct Half {
  using Memory = std::uint16_t;
  static HWY_INLINE Vector load(const Memory* p) { return Convert::widen(hn::LoadU(Halves(), p)); }
  static HWY_INLINE Vector load(const Memory* p, int n) { return Convert::widen(load_first(Halves(), p, n)); }
  static HWY_INLINE void store(Vector v, Memory* p) { hn::StoreU(Convert::narrow(v), Halves(), p); }
  static HWY_INLINE void store(Vector v, Memory* p, int n) { store_first(Convert::narrow(v), Halves(), p, n); }
  static HWY_INLINE Vector store_and_read(Vector v, Memory* p) {
    const auto halves = Convert::narrow(v);
    hn::StoreU(halves, Halves(), p);
    return Convert::widen(halves);
  }
  static HWY_INLINE Vector store_and_read(Vector v, Memory* p, int n) {
    const auto halves = Convert::narrow(v);
    store_first(halves, Halves(), p, n);
    return Convert::widen(halves);
  }
};

HWY_INLINE hn::Vec<Halves> low_halves(hn::Vec<Bits> v) {  // values must be below 2^16
  return hn::DemoteTo(Halves(), hn::BitCast(hn::RebindToSigned<D>(), v));
}

struct ConvertBf16 {
  static HWY_INLINE Vector widen(hn::Vec<Halves> h) {
    return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(Bits(), h)));
  }
  /// Round to nearest even by integer arithmetic (Highway 1.0.3 truncates); a NaN keeps sign and payload and is
  /// quieted.
  static HWY_INLINE hn::Vec<Halves> narrow(Vector v) {
    const Bits du;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fff)));
    const auto quiet = hn::Or(bits, hn::Set(du, 0x00400000));
    const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
    return low_halves(hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded)));
  }
};

struct ConvertF16 {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  static HWY_INLINE Vector widen(hn::Vec<Halves> h) {
    return hn::PromoteTo(D(), hn::BitCast(hn::Rebind<hwy::float16_t, D>(), h));
  }
  static HWY_INLINE hn::Vec<Halves> narrow(Vector v) {
    return hn::BitCast(Halves(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), v));
  }
#else
  // Without hardware conversion Highway 1.0.3 truncates and has neither infinities nor NaN. Rescaling the exponent by a
  // multiplication, and rounding subnormals by an addition, after F. Giesen, "Float->half variants" (2012).
  static HWY_INLINE Vector widen(hn::Vec<Halves> h) {
    const Bits du;
    const auto bits = hn::PromoteTo(du, h);
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fff)));
    const auto scaled = hn::BitCast(du, hn::Mul(hn::BitCast(D(), magnitude), hn::Set(D(), 0x1p112f)));
    const auto is_special = hn::Eq(hn::And(bits, hn::Set(du, 0x7c00)), hn::Set(du, 0x7c00));
    const auto special = hn::Or(magnitude, hn::Set(du, 0x7f800000));
    return hn::BitCast(D(), hn::Or(sign, hn::IfThenElse(is_special, special, scaled)));
  }
  static HWY_INLINE hn::Vec<Halves> narrow(Vector v) {
    const Bits du;
    const D d;
    const auto all = hn::BitCast(du, v);
    const auto sign = hn::And(all, hn::Set(du, 0x80000000));
    const auto bits = hn::Xor(all, sign);
    const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1));
    const auto normal =
        hn::ShiftRight<13>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0xc8000fff))));  // exponent - 112, + half - 1
    const auto magic = hn::Set(d, 0.5f);  // ulp of 0.5 in fp32 = smallest f16 subnormal
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

/// exp(x) for x <= 0 (also right up to 88): at most 1 ulp or so off; exp(0) = 1; below -87.3 and at -inf exactly 0;
/// NaN stays NaN; a large positive x gives something that is not a NaN by accident only, see exp_any.
/// 2^n * 2^f with n = round(x log2 e) and |f| <= 1/2; 2^f = 1 + f q(f), q minimax of degree 5 (0.05 u of relative
/// error).
HWY_INLINE Vector exp_negative(Vector x) {
  const D d;
  // Adding 1.5 * 2^23 + 127 rounds to an integer and leaves the biased exponent in the low bits.
  const auto magic = hn::Set(d, 12582912.0f + 127.0f);
  const auto log2e = hn::Set(d, 1.44269502162933349609375f);
  const auto shifted = hn::MulAdd(x, log2e, magic);
  const auto n = hn::Sub(shifted, magic);
  auto f = hn::MulSub(x, log2e, n);
  f = hn::MulAdd(x, hn::Set(d, 1.92596303350e-8f), f);
  auto p = hn::Set(d, 0.000155946770151f);
  p = hn::MulAdd(p, f, hn::Set(d, 0.00134066438475f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.00961769297614f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.0555031055121f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.240226527829f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693147214968f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(Bits(), shifted)));
  // Multiplying, rather than adding to the exponent, keeps a NaN.
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -87.33654f)), hn::Mul(p, power));
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
