#include "stability/decimal.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/errors.hpp"

namespace rowtune::stability {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(Decimal, RoundsOnceWhereTwoRoundingsGoWrong) {
  // A hair above the midpoint of 1 and its f32 neighbour: through double it becomes the midpoint, then even.
  EXPECT_EQ(decimal_to(Dtype::f32, "1.00000005960464477539062500000000000001"), 1 + 0x1p-23);
  EXPECT_EQ(decimal_to(Dtype::f32, "1.000000059604644775390625"), 1);
  EXPECT_EQ(decimal_to(Dtype::f16, "1.00048828125"), 1);
  EXPECT_EQ(decimal_to(Dtype::f16, "1.000488281250000000000000000000000000001"), 1 + 0x1p-10);
  EXPECT_EQ(decimal_to(Dtype::bf16, "1.0039062500000000000000001"), 1 + 0x1p-7);
}

TEST(Decimal, SurvivesWhatOverflowsOrUnderflowsAParser) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    EXPECT_EQ(decimal_to(dtype, "1e400"), infinity);
    EXPECT_EQ(decimal_to(dtype, "-1e99999999999999"), -infinity);
    EXPECT_EQ(decimal_to(dtype, "1e-400"), 0);
    EXPECT_TRUE(std::signbit(decimal_to(dtype, "-1e-99999999999999")));
  }
  EXPECT_EQ(decimal_to(Dtype::f16, "65519.99"), 65504);
  EXPECT_EQ(decimal_to(Dtype::f16, "65520"), infinity);
  EXPECT_EQ(decimal_to(Dtype::f64, "4.9406564584124654e-324"), 0x1p-1074);
  EXPECT_EQ(decimal_to(Dtype::f32, "1.4e-45"), 0x1p-149);
  EXPECT_EQ(decimal_to(Dtype::f16, "5.960464477539063e-8"), 0x1p-24);
}

TEST(Decimal, DigitsBeyondEveryBoundaryDecideOnWhichSideANumberLies) {
  const std::string half_way = "1.00048828125" + std::string(20'000, '0');  // of two f16 numbers
  EXPECT_EQ(decimal_to(Dtype::f16, half_way), 1);
  EXPECT_EQ(decimal_to(Dtype::f16, half_way + "1"), 1 + 0x1p-10);
  EXPECT_EQ(decimal_to(Dtype::f64, std::string(200'000, '3') + "e-199999"), 10.0 / 3);
  EXPECT_EQ(decimal_to(Dtype::f64, "0." + std::string(100'000, '0') + "25e100000"), 0.25);
  EXPECT_EQ(decimal_to(Dtype::f32, std::string(10'000'000, '9')), infinity) << "and takes no hours";
}

TEST(Decimal, ReadsAllSpellings) {
  EXPECT_EQ(decimal_to(Dtype::f64, "+.5"), 0.5);
  EXPECT_EQ(decimal_to(Dtype::f64, "007."), 7);
  EXPECT_EQ(decimal_to(Dtype::f64, "1E+3"), 1000);
  EXPECT_EQ(decimal_to(Dtype::f16, "-inf"), -infinity);
  EXPECT_EQ(decimal_to(Dtype::f16, "Infinity"), infinity);
  EXPECT_TRUE(std::isnan(decimal_to(Dtype::bf16, "NaN")));
  EXPECT_EQ(decimal_to_long_double("0.1"), 0.1L);
}

TEST(Decimal, RefusesWords) {
  for (const char* text : {"", "-", ".", "one", "1e", "1e+", "1.2.3", "1 2", "0x10", "1,5"}) {
    EXPECT_FALSE(is_decimal(text)) << text;
    EXPECT_THROW(decimal_to(Dtype::f16, text), UsageError) << text;
  }
}

TEST(Decimal, LongDecimalsAreKnownToHalfAUnitOfTheirLastPlace) {
  EXPECT_EQ(rounding_of_decimal("0.25"), 0);
  EXPECT_EQ(rounding_of_decimal("100000001.5"), 0);
  EXPECT_EQ(rounding_of_decimal("0.123456789012"), 5e-13L);
  EXPECT_EQ(rounding_of_decimal("4.24835425529e-18"), 5e-30L);
}

}  // namespace
}  // namespace rowtune::stability
