// The SIMD vocabulary of the cpu kernels on every target here: conversions over all 65536 values and around all
// midpoints, exp over all of its range, partial accesses that touch nothing else.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tests/cpu_simd_test.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/cpu/simd-inl.h"
#include "kernels/words.hpp"

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

template <class E>
void widen_as(const std::uint16_t* in, float* out, int n) {
  for (int i = 0; i < n; i += 2 * lanes()) {
    alignas(64) float order[HWY_MAX_BYTES / 2];
    // Where a pair's lanes belong is found by the mask of the first elements.
    const Pair pair = E::load(in + i);
    hn::Store(pair.a, D(), order);
    hn::Store(pair.b, D(), order + lanes());
    for (int j = 0; j < 2 * lanes(); ++j) {
      alignas(64) float before[HWY_MAX_BYTES / 2], after[HWY_MAX_BYTES / 2];
      const Pair ones{hn::Set(D(), 1.0f), hn::Set(D(), 1.0f)};
      const auto write = [](Pair p, float* to) HWY_ATTR {
        hn::Store(p.a, D(), to);
        hn::Store(p.b, D(), to + lanes());
      };
      write(blend(E::inside(j), ones, 0), before);
      write(j + 1 == 2 * lanes() ? ones : blend(E::inside(j + 1), ones, 0), after);
      for (int lane = 0; lane < 2 * lanes(); ++lane)
        if (before[lane] != after[lane]) out[i + j] = order[lane];
    }
  }
}

template <class E>
void narrow_as(const float* in, std::uint16_t* out, int n) {
  for (int i = 0; i < n; i += lanes()) E::store_one(hn::LoadU(D(), in + i), out + i, lanes());
}

/// Rounds by the store of a pair, whose order is that of a load.
template <class E>
void narrow_pair_as(const std::uint16_t* in, std::uint16_t* out, int n, float factor) {
  for (int i = 0; i < n; i += 2 * lanes()) {
    const auto by = hn::Set(D(), factor);
    E::store(each(E::load(in + i), [&](Vector v) HWY_ATTR { return hn::Mul(v, by); }), out + i);
  }
}

void widen(Dtype dtype, const std::uint16_t* in, float* out, int n) {
  dtype == Dtype::f16 ? widen_as<F16>(in, out, n) : widen_as<Bf16>(in, out, n);
}
void narrow(Dtype dtype, const float* in, std::uint16_t* out, int n) {
  dtype == Dtype::f16 ? narrow_as<F16>(in, out, n) : narrow_as<Bf16>(in, out, n);
}
void narrow_pairs(Dtype dtype, const std::uint16_t* in, std::uint16_t* out, int n, float factor) {
  dtype == Dtype::f16 ? narrow_pair_as<F16>(in, out, n, factor) : narrow_pair_as<Bf16>(in, out, n, factor);
}

void exponential(const float* in, float* out, int n, bool any) {
  for (int i = 0; i < n; i += lanes()) {
    const Vector x = hn::LoadU(D(), in + i);
    hn::StoreU(any ? exp_any(x) : exp_negative(x), D(), out + i);
  }
}

/// Copies the first n of a pair.
template <class E>
void copy_part_as(const void* in, void* out, int n) {
  using T = typename E::Memory;
  E::store(E::load(static_cast<const T*>(in), n), static_cast<T*>(out), n);
}
void copy_part(Dtype dtype, const void* in, void* out, int n) {
  if (dtype == Dtype::f32) return copy_part_as<F32>(in, out, n);
  dtype == Dtype::f16 ? copy_part_as<F16>(in, out, n) : copy_part_as<Bf16>(in, out, n);
}

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kernels/tests/cpu_support.hpp"

namespace rowtune::cpu {
namespace {

HWY_EXPORT(widen);
HWY_EXPORT(narrow);
HWY_EXPORT(narrow_pairs);
HWY_EXPORT(exponential);
HWY_EXPORT(copy_part);

constexpr int all_halves = 65536;

std::vector<std::uint16_t> every_half() {
  std::vector<std::uint16_t> bits(all_halves);
  for (int i = 0; i < all_halves; ++i) bits[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(i);
  return bits;
}

class CpuConversions : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Halves, CpuConversions, testing::Values(Dtype::f16, Dtype::bf16),
                         [](const auto& of) { return to_string(of.param); });

TEST_P(CpuConversions, WidenAllValuesExactly) {
  on_every_target([&] {
    const auto bits = every_half();
    std::vector<float> got(all_halves);
    HWY_DYNAMIC_DISPATCH(widen)(GetParam(), bits.data(), got.data(), all_halves);
    for (int i = 0; i < all_halves; ++i) {
      const double right = load_element(GetParam(), bits.data(), i);
      const double value = got[static_cast<std::size_t>(i)];
      ASSERT_TRUE(std::isnan(right) ? std::isnan(value) : value == right && std::signbit(value) == std::signbit(right))
          << "bits " << i << ": " << value << " instead of " << right;
    }
  });
}

// For each value v and the next one up: v, the midpoint, and the fp32 numbers beside it, both signs.
TEST_P(CpuConversions, RoundToNearestEvenAroundEveryMidpoint) {
  const Dtype dtype = GetParam();
  const int infinity = dtype == Dtype::f16 ? 0x7c00 : 0x7f80;
  const auto bits = every_half();
  std::vector<float> values;
  for (int i = 0; i < infinity; ++i) {
    const auto low = static_cast<float>(load_element(dtype, bits.data(), i));
    // One step beyond the largest is where it would be if there were larger ones.
    const double step = i + 1 < infinity ? load_element(dtype, bits.data(), i + 1) - low
                                         : low - load_element(dtype, bits.data(), i - 1);
    const auto middle = static_cast<float>(low + step / 2);  // exact: one bit more
    for (float x :
         {low, std::nextafter(low, 1e38f), middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e38f)}) {
      values.push_back(x);
      values.push_back(-x);
    }
  }
  for (float x :
       {HUGE_VALF, -HUGE_VALF, std::bit_cast<float>(0x7fc00000u), std::bit_cast<float>(0xffc00000u),
        std::bit_cast<float>(0x7fff0000u), std::bit_cast<float>(0x7f810000u), 3e38f, -3.4e38f, 65519.0f, 65520.0f})
    values.push_back(x);
  while (values.size() % 64 != 0) values.push_back(0);
  on_every_target([&] {
    std::vector<std::uint16_t> got(values.size());
    HWY_DYNAMIC_DISPATCH(narrow)(dtype, values.data(), got.data(), static_cast<int>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t right = 0;
      store_element(dtype, &right, 0, values[i]);
      if (std::isnan(values[i]))
        ASSERT_TRUE(std::isnan(load_element(dtype, &got[i], 0))) << std::bit_cast<std::uint32_t>(values[i]);
      else
        ASSERT_EQ(got[i], right) << "for " << values[i] << ", bits " << std::bit_cast<std::uint32_t>(values[i]);
    }
  });
}

TEST_P(CpuConversions, StoreWholePairsByTheSameRounding) {
  const auto bits = every_half();
  on_every_target([&] {
    for (float factor : {1.0f, 1.00390625f, 0.3333333f}) {
      std::vector<std::uint16_t> got(all_halves);
      HWY_DYNAMIC_DISPATCH(narrow_pairs)(GetParam(), bits.data(), got.data(), all_halves, factor);
      for (int i = 0; i < all_halves; ++i) {
        const float x = static_cast<float>(load_element(GetParam(), bits.data(), i)) * factor;
        std::uint16_t right = 0;
        store_element(GetParam(), &right, 0, x);
        const auto value = got[static_cast<std::size_t>(i)];
        ASSERT_TRUE(std::isnan(x) ? std::isnan(load_element(GetParam(), &value, 0)) : value == right)
            << "bits " << i << " times " << factor << " gave bits " << value << " instead of " << right;
      }
    }
  });
}

// Wherever the result is normal: the polynomial is off by 0.05 u, its evaluation by an ulp or so (f carries u/2, the
// last two roundings half an ulp each, more where the result is just above a power of two); without fma, f carries
// more.
TEST(CpuExponential, IsAccurateOverItsRange) {
  on_every_target([&] {
    std::vector<float> x, got;
    for (std::uint32_t bits = std::bit_cast<std::uint32_t>(0x1p-30f); bits < std::bit_cast<std::uint32_t>(87.3f);
         bits += 997) {
      x.push_back(-std::bit_cast<float>(bits));
      x.push_back(std::min(std::bit_cast<float>(bits), 88.0f));
    }
    while (x.size() % 64 != 0) x.push_back(0);
    got.resize(x.size());
    HWY_DYNAMIC_DISPATCH(exponential)(x.data(), got.data(), static_cast<int>(x.size()), false);
    constexpr double bound = 1.2;
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double right = std::exp(static_cast<double>(x[i]));
      const double ulp = std::ldexp(1.0, std::ilogb(right) - 23);
      const double error = std::fabs(got[i] - right) / ulp;
      ASSERT_TRUE(error <= bound) << "exp(" << x[i] << ") = " << got[i] << ", " << error << " ulp";
      worst = std::max(worst, error);
    }
    RecordProperty(simd_target(), std::to_string(worst));
  });
}

TEST(CpuExponential, KeepsSpecialValues) {
  on_every_target([&] {
    std::vector<float> x(64, 0), got(64);
    const float cases[] = {0,     -0.0f, -HUGE_VALF, -1e30f, -88.0f, -103.0f, std::numeric_limits<float>::quiet_NaN(),
                           -87.0f};
    std::copy(std::begin(cases), std::end(cases), x.begin());
    for (bool any : {false, true}) {
      HWY_DYNAMIC_DISPATCH(exponential)(x.data(), got.data(), 64, any);
      EXPECT_EQ(got[0], 1);
      EXPECT_EQ(got[1], 1);
      for (int i : {2, 3, 4, 5}) EXPECT_EQ(got[static_cast<std::size_t>(i)], 0) << x[static_cast<std::size_t>(i)];
      EXPECT_TRUE(std::isnan(got[6]));
      EXPECT_GE(got[7], std::numeric_limits<float>::min());
    }
    const float large[] = {89, 1e30f, HUGE_VALF, 88};
    std::copy(std::begin(large), std::end(large), x.begin());
    HWY_DYNAMIC_DISPATCH(exponential)(x.data(), got.data(), 64, true);
    for (std::size_t i : {0, 1, 2}) EXPECT_EQ(got[i], HUGE_VALF) << x[i];
    EXPECT_TRUE(std::isfinite(got[3]));
  });
}

// Pages without access stand right behind, and right before, the elements: a read beyond them would end the test.
TEST(CpuPartialAccess, TouchesNothingElse) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  auto* base =
      static_cast<std::byte*>(mmap(nullptr, 6 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(base, MAP_FAILED);
  for (std::size_t i : {0, 2, 5}) ASSERT_EQ(mprotect(base + i * page, page, PROT_NONE), 0);
  std::byte* in_page = base + page;
  std::byte* out_page = base + 3 * page;  // and the one behind: a canary must be writable
  on_every_target([&] {
    for (Dtype dtype : tensor_dtypes())
      for (int n = 1; n < 2 * simd_lanes(); ++n)
        for (bool at_end : {false, true}) {
          const std::size_t bytes = static_cast<std::size_t>(n * size_of(dtype));
          std::byte* in = at_end ? in_page + page - bytes : in_page;
          std::byte* out = at_end ? out_page + page - bytes : out_page;
          for (std::size_t i = 0; i < bytes; ++i) in[i] = static_cast<std::byte>(i % 60);  // finite numbers
          std::memset(out_page, 0xa5, 2 * page);
          HWY_DYNAMIC_DISPATCH(copy_part)(dtype, in, out, n);
          ASSERT_EQ(std::memcmp(in, out, bytes), 0) << to_string(dtype) << ' ' << n;
          for (std::byte* p = out_page; p < out_page + 2 * page; ++p)
            ASSERT_TRUE((p >= out && p < out + bytes) || *p == std::byte{0xa5}) << to_string(dtype) << ' ' << n;
        }
  });
  munmap(base, 6 * page);
}

}  // namespace
}  // namespace rowtune::cpu
#endif
