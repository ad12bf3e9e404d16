#include "stability/moments.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "stability/recipes.hpp"
#include "stability/reference.hpp"

namespace rowtune::stability {
namespace {

MomentsValue run(const MomentsChoice& choice, const std::vector<double>& x, ArithmeticChoice arithmetic = {}) {
  return run_moments(choice, arithmetic, MemoryRow(x));
}

std::string name(const MomentsChoice& choice) { return to_string(choice.method) + "_" + to_string(choice.summation); }

class Methods : public testing::TestWithParam<MomentsChoice> {};

TEST_P(Methods, AreExactOnSmallIntegersInEveryType) {
  // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, population variance 4; all intermediate results fit 8 bits.
  const std::vector<double> x = {2, 4, 4, 4, 5, 5, 7, 9};
  for (const Dtype type : {Dtype::f64, Dtype::f32, Dtype::f16}) {
    const MomentsValue v = run(GetParam(), x, {type});
    const double slack = type == Dtype::f16 ? 0x1p-7 : 1e-6;  // Welford divides by 3, 6 and 7
    EXPECT_NEAR(v.mean, 5, slack * 5) << to_string(type);
    EXPECT_NEAR(v.variance, 4, slack * 4) << to_string(type);
    EXPECT_NEAR(v.sample_variance, 32.0 / 7, slack * 5) << to_string(type);
    EXPECT_FALSE(v.flags.any());
  }
}

TEST_P(Methods, AgreeWithTheReferenceOnEasyData) {
  for (const std::int64_t n : {1, 2, 3, 31, 255, 257, 5000}) {
    Recipe recipe;
    recipe.n = n;
    recipe.mean = 1;
    const std::vector<double> x = make_row(recipe, Dtype::f32);
    const MomentsReference reference = reference_moments(MemoryRow(x));
    for (const bool fma : {false, true})
      for (const bool reciprocal : {false, true}) {
        const MomentsValue v = run(GetParam(), x, {Dtype::f32, fma, reciprocal});
        // Depth at most n; condition 3 at most: (3 n + 3) u k^2, and a reciprocal or two.
        const double tolerance = static_cast<double>(3 * n + 10) * 0x1p-24 * 10;
        EXPECT_TRUE(std::fabs(v.variance - static_cast<double>(reference.variance)) <= tolerance) << n;
        EXPECT_TRUE(std::fabs(v.mean - static_cast<double>(reference.mean)) <= tolerance * 3) << n;
      }
  }
}

TEST_P(Methods, PropagateNaN) {
  const std::vector<double> x = {1, 2, std::numeric_limits<double>::quiet_NaN(), 4};
  EXPECT_TRUE(std::isnan(run(GetParam(), x).variance));
}

TEST_P(Methods, OfOneElementHaveNoSampleVariance) {
  const MomentsValue v = run(GetParam(), {5});
  EXPECT_EQ(v.mean, 5);
  EXPECT_EQ(v.variance, 0);
  EXPECT_TRUE(std::isnan(v.sample_variance));
}

TEST_P(Methods, SayWhenSquaresLeaveTheRange) {
  EXPECT_TRUE(run(GetParam(), {1e30, -1e30, 2e30}).flags.overflow);
  EXPECT_TRUE(run(GetParam(), {1e-25, -1.1e-25, 2.3e-25}).flags.underflow);
  EXPECT_FALSE(run(GetParam(), {1, 2, 4}).flags.any());
}

INSTANTIATE_TEST_SUITE_P(All, Methods, testing::ValuesIn(all_moments(32)),
                         [](const auto& row) { return name(row.param); });

TEST(OnePass, LosesASpreadThatTheOthersKeep) {
  const std::vector<double> x = {10000, 10001, 10002, 10003};  // squares need 27 bits
  EXPECT_EQ(run({MomentsMethod::two_pass, {}}, x).variance, 1.25);
  EXPECT_EQ(run({MomentsMethod::welford, {}}, x).variance, 1.25);
  EXPECT_EQ(run({MomentsMethod::shifted_one_pass, {}}, x).variance, 1.25);
  EXPECT_NE(run({MomentsMethod::one_pass, {}}, x).variance, 1.25);
}

TEST(KernelForms, AreTwoPassAndWelfordOverLanes) {
  int used = 0;
  for (const MomentsChoice& choice : all_moments(256)) used += used_by_kernels(choice);
  EXPECT_EQ(used, 2);
  EXPECT_FALSE(used_by_kernels({MomentsMethod::one_pass, {Order::lanes, 256}}));
}

}  // namespace
}  // namespace rowtune::stability
