// The emulator's conversions and maxima give the bits that a GPU gives.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rowtune/primitives.cuh"

namespace rowtune {
namespace {

/// The integer code against the host's own arithmetic, over every f16.
TEST(EmulatedArithmetic, ConvertsEveryHalf) {
  for (unsigned h = 0; h < 65536; ++h) {
    const int exponent = static_cast<int>((h >> 10) & 31u);
    const int fraction = static_cast<int>(h & 1023u);
    double value = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) value = fraction ? std::nan("") : std::numeric_limits<double>::infinity();
    if (h & 0x8000u) value = -value;
    const float got = half_low(h);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(got));
      EXPECT_EQ(pack_halves(got, 0.0f), 0x7fffu);
    } else {
      EXPECT_EQ(static_cast<double>(got), value) << h;
      EXPECT_EQ(pack_halves(got, got), h | (h << 16)) << h;
      EXPECT_EQ(half_high(h << 16), got);
    }
  }
}

/// Between two neighbours: the nearer, and of two equally near the even one.
TEST(EmulatedArithmetic, RoundsToNearestEven) {
  for (unsigned h = 0; h < 0x7bffu; ++h) {
    const float low = half_low(h), high = half_low(h + 1);
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(pack_halves(middle, 0.0f), h % 2 == 0 ? h : h + 1) << h;
    EXPECT_EQ(pack_halves(std::nextafter(middle, 0.0f), 0.0f), h) << h;
    EXPECT_EQ(pack_halves(std::nextafter(middle, high), 0.0f), h + 1) << h;
  }
  EXPECT_EQ(pack_halves(65519.996f, 65520.0f), 0x7bffu | (0x7c00u << 16));
  for (unsigned b = 0; b < 0x7f80u; ++b) {
    const unsigned middle = (b << 16) | 0x8000u;
    EXPECT_EQ(pack_bfloats(float_of(middle), 0.0f), b % 2 == 0 ? b : b + 1);
    EXPECT_EQ(pack_bfloats(float_of(middle - 1), float_of(middle + 1)), b | ((b + 1) << 16));
  }
  EXPECT_EQ(pack_bfloats(std::nanf(""), -infinity()), 0x7fffu | (0xff80u << 16));
}

TEST(EmulatedArithmetic, LargerIgnoresANan) {
  const float nan = std::nanf("");
  EXPECT_EQ(larger(nan, 1.0f), 1.0f);
  EXPECT_EQ(larger(-infinity(), nan), -infinity());
  EXPECT_TRUE(std::isnan(larger(nan, nan)));
  EXPECT_EQ(bits_of(larger(-0.0f, 0.0f)), 0u);
  EXPECT_EQ(bits_of(larger(0.0f, -0.0f)), 0u);
  EXPECT_EQ(larger_halves(pack_halves(1.0f, nan), pack_halves(2.0f, -3.0f)), pack_halves(2.0f, -3.0f));
  EXPECT_EQ(larger_bfloats(pack_bfloats(nan, 4.0f), pack_bfloats(-5.0f, 2.0f)), pack_bfloats(-5.0f, 4.0f));
}

TEST(EmulatedArithmetic, FastExponentialFlushesSubnormals) {
  EXPECT_EQ(exp2_fast(0.0f), 1.0f);
  EXPECT_EQ(exp2_fast(-126.0f), 0x1p-126f);
  EXPECT_EQ(exp2_fast(-126.5f), 0.0f);
  EXPECT_EQ(exp2_fast(-infinity()), 0.0f);
  EXPECT_EQ(exp2_fast(infinity()), infinity());
  EXPECT_TRUE(std::isnan(exp2_fast(std::nanf(""))));
}

}  // namespace
}  // namespace rowtune
