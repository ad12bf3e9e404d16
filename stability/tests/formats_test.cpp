#include "stability/formats.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stability/elements.hpp"
#include "stability/recipes.hpp"

namespace rowtune::stability {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(RoundTo, F32IsWhatTheProcessorDoes) {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    const double x = (random.uniform() - 0.5) * std::ldexp(1.0, static_cast<int>(random.uniform() * 320) - 170);
    ASSERT_EQ(round_to(Dtype::f32, static_cast<long double>(x)), static_cast<double>(static_cast<float>(x))) << x;
  }
}

TEST(RoundTo, KeepsEveryF16AndBf16) {
  for (int bits = 0; bits < 65536; ++bits) {
    const double half = half_to_double(static_cast<std::uint16_t>(bits));
    const double bfloat = bfloat_to_double(static_cast<std::uint16_t>(bits));
    if (!std::isnan(half)) {
      ASSERT_EQ(round_to(Dtype::f16, static_cast<long double>(half)), half) << bits;
    }
    if (!std::isnan(bfloat)) {
      ASSERT_EQ(round_to(Dtype::bf16, static_cast<long double>(bfloat)), bfloat) << bits;
    }
  }
}

TEST(RoundTo, TiesGoToEvenAndTheRangeEnds) {
  EXPECT_EQ(round_to(Dtype::f16, 2049), 2048);
  EXPECT_EQ(round_to(Dtype::f16, 2051), 2052);
  EXPECT_EQ(round_to(Dtype::f16, 65519.996L), 65504);
  EXPECT_EQ(round_to(Dtype::f16, 65520), infinity);
  EXPECT_EQ(round_to(Dtype::f16, 0x1p-25L), 0);
  EXPECT_EQ(round_to(Dtype::f16, 0x1.8p-25L), 0x1p-24);
  EXPECT_EQ(round_to(Dtype::bf16, 257), 256);
  EXPECT_EQ(round_to(Dtype::f64, 1 + 0x1p-53L), 1);
  EXPECT_EQ(round_to(Dtype::f64, 1 + 0x1p-53L + 0x1p-63L), 1 + 0x1p-52);
  EXPECT_EQ(round_to(Dtype::f64, -std::ldexp(1.0L, 1024)), -infinity);
  EXPECT_TRUE(std::isnan(round_to(Dtype::f32, std::numeric_limits<long double>::quiet_NaN())));
}

TEST(UlpAt, IsTheDistanceBetweenNeighbours) {
  EXPECT_EQ(ulp_at(Dtype::f32, 1), 0x1p-23L);
  EXPECT_EQ(ulp_at(Dtype::f32, -1.999L), 0x1p-23L);
  EXPECT_EQ(ulp_at(Dtype::f32, 2), 0x1p-22L);
  EXPECT_EQ(ulp_at(Dtype::f16, 0), 0x1p-24L);
  EXPECT_EQ(ulp_at(Dtype::f16, 1e-9L), 0x1p-24L);
  EXPECT_EQ(ulp_at(Dtype::bf16, 1), 0x1p-7L);
  EXPECT_EQ(ulp_at(Dtype::f16, std::numeric_limits<long double>::infinity()), 32);
  EXPECT_TRUE(std::isnan(ulp_at(Dtype::f32, std::numeric_limits<long double>::quiet_NaN())));
}

class Ordinals : public testing::TestWithParam<Dtype> {};

TEST_P(Ordinals, CountTheNumbersInOrder) {
  const Dtype dtype = GetParam();
  const Format& f = format_of(dtype);
  EXPECT_EQ(from_ordinal(dtype, 0), 0);
  EXPECT_EQ(from_ordinal(dtype, 1), f.smallest_nonzero);
  for (const double x : {f.smallest_nonzero, f.smallest_normal, 1.0, 88.5, f.largest}) {
    const std::int64_t ordinal = ordinal_of(dtype, x);
    EXPECT_EQ(from_ordinal(dtype, ordinal), x);
    EXPECT_EQ(static_cast<long double>(from_ordinal(dtype, ordinal - 1)),
              static_cast<long double>(x) - ulp_at(dtype, from_ordinal(dtype, ordinal - 1)))
        << x;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Ordinals, testing::Values(Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16),
                         [](const auto& row) { return to_string(row.param); });

TEST(StudyDtype, NamesTheChoices) {
  EXPECT_EQ(parse_study_dtype("f64"), Dtype::f64);
  try {
    parse_study_dtype("f8");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_NE(std::string(e.what()).find("f32, f16, bf16, f64"), std::string::npos);
  }
}

}  // namespace
}  // namespace rowtune::stability
