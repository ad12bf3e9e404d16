// The emulated formats against one exact rounding: long double holds the sums, products and quotients of such short
// numbers exactly, or far more closely than a second rounding could notice.

#include "stability/low_precision.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "stability/float_flags.hpp"
#include "stability/formats.hpp"
#include "stability/recipes.hpp"

namespace rowtune::stability {
namespace {

template <class F>
struct DtypeOf;
template <Dtype D>
struct DtypeOf<Low<D>> {
  static constexpr Dtype value = D;
};

template <class F>
class LowPrecision : public testing::Test {
 protected:
  static constexpr Dtype dtype = DtypeOf<F>::value;
  Random random{5};
  /// Any number of moderate size, subnormals included.
  F some() {
    const double size = std::ldexp(random.uniform() + 0.5, static_cast<int>(random.uniform() * 34) - 22);
    return F::exact(static_cast<float>(round_to(dtype, random.uniform() < 0.5 ? size : -size)));
  }
  static double exact(F x) { return static_cast<double>(x.value()); }
  static double rounded(long double x) { return round_to(dtype, x); }
};
using Formats = testing::Types<Half, Bfloat>;
TYPED_TEST_SUITE(LowPrecision, Formats);

TYPED_TEST(LowPrecision, RoundsEachOperationOnce) {
  for (int i = 0; i < 300000; ++i) {
    const TypeParam a = this->some(), b = this->some(), c = this->some();
    const long double x = a.value(), y = b.value(), z = c.value();
    ASSERT_EQ(this->exact(a + b), this->rounded(x + y)) << x << " " << y;
    ASSERT_EQ(this->exact(a - b), this->rounded(x - y)) << x << " " << y;
    ASSERT_EQ(this->exact(a * b), this->rounded(x * y)) << x << " " << y;
    ASSERT_EQ(this->exact(TypeParam::fused(a, b, c)), this->rounded(x * y + z)) << x << " " << y << " " << z;
    if (y != 0) {
      ASSERT_EQ(this->exact(a / b), this->rounded(x / y)) << x << " " << y;
    }
  }
}

TEST(Half, FusedMultiplyAddIsNotRoundedTwice) {
  // 1 + 2^-11 + 2^-40-ish: the sum in double loses nothing here, but the rounding to half must see the tail.
  const Half one(1.0f), tie = Half::exact(0x1p-11f);
  EXPECT_EQ(Half::fused(one, one, tie).value(), 1.0f);  // a tie: even
  const Half tiny = Half::exact(0x1p-24f);
  // a * b = 2^-11 (1 + 2^-10), a tail above the tie.
  const Half a = Half::exact(0x1.004p-6f), b = Half::exact(0x1p-5f);
  EXPECT_EQ(Half::fused(a, b, one).value(), 1.0f + 0x1p-10f);
  // 2048 + 1 is a tie; 2^-48 more in the product decides, far below the last place of a double's half.
  EXPECT_EQ(Half::fused(tiny, tiny, Half(2049.0f)).value(), 2048.0f);
}

TEST(Half, OverflowsAtTheMidpointBeyondTheLargest) {
  EXPECT_EQ((Half(65504.0f) + Half(15.0f)).value(), 65504.0f);
  EXPECT_TRUE(std::isinf((Half(65504.0f) + Half(16.0f)).value()));
  EXPECT_TRUE(std::isnan((Half(65504.0f) * Half(2.0f) - Half(65504.0f) * Half(2.0f)).value()));
}

TEST(Half, RaisesTheFlagsOfTheHardware) {
  {
    const FlagWatch watch;
    const volatile float x = (Half(60000.0f) + Half(60000.0f)).value();
    EXPECT_TRUE(watch.seen().overflow) << x;
  }
  {
    const FlagWatch watch;
    const volatile float x = (Half(0.01f) * Half(0.003f)).value();
    EXPECT_TRUE(watch.seen().underflow) << x;
  }
  {
    const FlagWatch watch;
    const volatile float x = (Half::exact(0x1p-10f) * Half::exact(0x1p-8f)).value();  // subnormal but exact
    EXPECT_FALSE(watch.seen().any()) << x;
  }
}

TEST(Bfloat, RaisesTheFlagsOfTheHardware) {
  const FlagWatch watch;
  const volatile float x = (Bfloat(1e-30f) * Bfloat(1.3e-9f)).value();
  EXPECT_TRUE(watch.seen().underflow) << x;
}

}  // namespace
}  // namespace rowtune::stability
