#include "stability/softmax.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stability/recipes.hpp"
#include "stability/reference.hpp"

namespace rowtune::stability {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

std::vector<double> softmax(const SoftmaxChoice& choice, const std::vector<double>& x, ArithmeticChoice a = {}) {
  const MemoryRow row(x);
  std::vector<double> out(x.size());
  FloatFlags flags;
  SoftmaxRun(choice, a, row).softmax(0, out, flags);
  return out;
}

double log_sum_exp(const SoftmaxChoice& choice, const std::vector<double>& x) {
  const MemoryRow row(x);
  return SoftmaxRun(choice, {}, row).state().log_sum_exp;
}

class SoftmaxMethods : public testing::TestWithParam<SoftmaxChoice> {
 protected:
  bool safe() const { return GetParam().method != SoftmaxMethod::unsafe; }
};

TEST_P(SoftmaxMethods, AgreeWithTheReferenceOnEasyLogits) {
  for (const std::int64_t n : {1, 2, 7, 31, 257, 3000}) {
    Recipe recipe;
    recipe.n = n;
    recipe.scale = 2;
    const std::vector<double> x = make_row(recipe, Dtype::f32);
    const SoftmaxReference reference = reference_softmax(MemoryRow(x));
    for (const Exponential exponential : {Exponential::accurate, Exponential::fast}) {
      const std::vector<double> y = softmax(GetParam(), x, {Dtype::f32, true, false, exponential});
      // Depth at most n; range below 20; the fast form costs 4 range more; 3 a rescale.
      const double tolerance = (static_cast<double>(n) * 4 + 200) * 0x1p-24;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto right = static_cast<double>(reference.softmax(x[i]));
        ASSERT_TRUE(std::fabs(y[i] - right) <= tolerance * right) << n << " " << i;
      }
    }
    ASSERT_TRUE(std::fabs(log_sum_exp(GetParam(), x) - static_cast<double>(reference.log_sum_exp)) <=
                (static_cast<double>(n) * 4 + 200) * 0x1p-24 * 10);
  }
}

TEST_P(SoftmaxMethods, GiveExactZerosUnderAMask) {
  for (std::size_t kept = 0; kept < 40; kept += 13) {
    std::vector<double> x(40, -inf);
    x[kept] = 3;
    const std::vector<double> y = softmax(GetParam(), x);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], i == kept ? 1 : 0) << i;
    EXPECT_NEAR(log_sum_exp(GetParam(), x), 3, 1e-6);
  }
}

TEST_P(SoftmaxMethods, FollowThePromiseForNonFiniteRows) {
  // The unshifted form loses a +inf: exp(1) / inf is 0. One more reason against it.
  const std::vector<double> plus_inf = safe() ? std::vector<double>{1, inf, 2} : std::vector<double>{nan_value, inf};
  for (const std::vector<double>& x :
       {std::vector<double>{-inf, nan_value, 5}, {nan_value, -inf, -inf}, plus_inf, {-inf, -inf}})
    for (const double y : softmax(GetParam(), x)) EXPECT_TRUE(std::isnan(y));
  EXPECT_TRUE(std::isnan(log_sum_exp(GetParam(), {-inf, nan_value, 5})));
  EXPECT_EQ(log_sum_exp(GetParam(), {-inf, -inf}), -inf);
  EXPECT_EQ(log_sum_exp(GetParam(), {1, inf}), inf);
  EXPECT_TRUE(std::isnan(log_sum_exp(GetParam(), {nan_value, inf})));
}

TEST_P(SoftmaxMethods, SurviveLargeLogitsIfShifted) {
  for (const double offset : {1000.0, -1000.0}) {
    const std::vector<double> y = softmax(GetParam(), {offset, offset + 1, offset + 2});
    if (safe()) {
      EXPECT_NEAR(y[2], 0.66524095577, 1e-6);
    } else {
      EXPECT_TRUE(std::isnan(y[2]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SoftmaxMethods, testing::ValuesIn(all_softmax(32)),
                         [](const auto& row) { return method_name(row.param) + "_" + to_string(row.param.summation); });

TEST(Online, CountsTheRescalesOfTheUnluckiestElement) {
  const SoftmaxChoice online{SoftmaxMethod::online, {}};
  const auto rescales = [&](const std::vector<double>& x) {
    const MemoryRow row(x);
    return SoftmaxRun(online, {}, row).state().rescales;
  };
  EXPECT_EQ(rescales({4, 3, 2, 1}), 1);  // each element but the first is scaled once, as it enters
  EXPECT_EQ(rescales({1, 2, 3, 4}), 3);  // the first is scaled by each that follows
  EXPECT_EQ(rescales({1, 1, 1}), 0);
}

TEST(LogSoftmax, FoldingTheMaximumRoundsAtItsSize) {
  const std::vector<double> x = {-1e7, -1e7 - 1, -1e7 - 2};
  const MemoryRow row(x);
  std::vector<double> shifted(3), folded(3);
  FloatFlags flags;
  SoftmaxRun({SoftmaxMethod::three_pass, {}}, {}, row).log_softmax(0, shifted, flags);
  SoftmaxRun({SoftmaxMethod::three_pass, {}, LogForm::folded}, {}, row).log_softmax(0, folded, flags);
  EXPECT_NEAR(shifted[0], -0.40760596444, 1e-6);
  EXPECT_GT(std::fabs(folded[0] + 0.40760596444), 0.05);
}

TEST(FastExponential, FlushesWhatTheHardwareFlushes) {
  using Fast = Arithmetic<float, false, false, Exponential::fast>;
  EXPECT_EQ(Fast::exp(0), 1);
  EXPECT_EQ(Fast::exp(-88), 0);  // 6e-39
  EXPECT_GT(Fast::exp(-87), 0);
  EXPECT_GT((Arithmetic<float, false, false>::exp(-88)), 0);
}

}  // namespace
}  // namespace rowtune::stability
