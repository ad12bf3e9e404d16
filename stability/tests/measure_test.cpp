#include "stability/measure.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "stability/bounds.hpp"
#include "stability/comparisons.hpp"
#include "stability/recipes.hpp"

namespace rowtune::stability {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

TEST(ErrorTally, CountsErrorsInUlpsOfTheTarget) {
  ErrorTally tally(Dtype::bf16);
  tally.add(1 + 0x1p-7, 1.0L);
  tally.add(2, 2.0L);
  EXPECT_EQ(tally.max_ulp, 1);
  EXPECT_EQ(tally.mean_ulp(), 0.5);
  EXPECT_EQ(tally.max_relative, 0x1p-7);
}

TEST(ErrorTally, ANaNNeverVanishes) {
  ErrorTally tally(Dtype::f32);
  tally.add(nan_value, 1.0L);
  tally.add(1, 1.0L);
  EXPECT_TRUE(std::isnan(tally.max_ulp));
  EXPECT_TRUE(std::isnan(tally.max_relative));
  EXPECT_EQ(tally.nan_count, 1);
  EXPECT_EQ(tally.kind_mismatch_count, 1);
}

TEST(ErrorTally, KindsMustMatch) {
  ErrorTally tally(Dtype::f32);
  tally.add(nan_value, std::numeric_limits<long double>::quiet_NaN());
  tally.add(-inf, -std::numeric_limits<long double>::infinity());
  EXPECT_EQ(tally.kind_mismatch_count, 0);
  EXPECT_EQ(tally.max_ulp, 0);
  tally.add(inf, -std::numeric_limits<long double>::infinity());
  EXPECT_EQ(tally.kind_mismatch_count, 1);
}

TEST(ErrorTally, SubnormalReferencesHaveUlpsButNoRelativeError) {
  ErrorTally tally(Dtype::f16);
  tally.add(0, 0x1p-24L);
  EXPECT_EQ(tally.max_ulp, 1);
  EXPECT_FALSE(tally.has_relative());
  EXPECT_EQ(tally.false_zero_count, 1);
}

TEST(ErrorTally, VariancesMustNotBeNegative) {
  ErrorTally tally(Dtype::f32);
  tally.add_variance(-1e-3, 1e-5L);
  EXPECT_EQ(tally.negative_count, 1);
}

TEST(Lre, IsCappedAndNaNHasNone) {
  EXPECT_EQ(lre_of(0), 15);
  EXPECT_EQ(lre_of(1e-20), 15);
  EXPECT_NEAR(lre_of(1e-6), 6, 1e-12);
  EXPECT_EQ(lre_of(3), 0);
  EXPECT_EQ(lre_of(nan_value), 0);
}

TEST(OutputErrors, FindsOneWrongElementOfASoftmax) {
  const Workload w = Workload::of(Operation::softmax, Dtype::f32, parse_shape("2x3:ld=4"));
  const std::vector<float> input = {0, 0, 0, 99, 1, 1, 1, 99};
  const float third = 1.0f / 3;
  std::vector<float> output = {third, third, third, -7, third, third, third, -7};
  const OutputReference reference(w, input.data(), nullptr, nullptr, nullptr);
  EXPECT_EQ(reference.errors_of_row(output.data(), 1).count, 3);
  EXPECT_LE(reference.errors_of_row(output.data(), 1).max_ulp, 0.5);
  output[5] = 0.25f;
  EXPECT_NEAR(reference.errors_of_row(output.data(), 1).max_relative, 0.25, 1e-6);
  EXPECT_LE(reference.errors_of_row(output.data(), 0).max_ulp, 0.5);
  output[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(reference.errors_of_row(output.data(), 1).kind_mismatch_count, 1);
  EXPECT_TRUE(std::isnan(reference.errors_of_row(output.data(), 1).max_ulp));
}

TEST(OutputErrors, KnowsWeightsBiasesAndTheRoundedResidual) {
  Workload w = Workload::of(Operation::layernorm, Dtype::f32, Shape::of(1, 2));
  w.options.eps = 0;
  const std::vector<float> x = {1, 3}, gamma = {2, 2}, beta = {10, 10}, y = {8, 12};
  EXPECT_EQ(OutputReference(w, x.data(), nullptr, gamma.data(), beta.data()).errors_of_row(y.data(), 0).max_ulp, 0);

  Workload fused = Workload::of(Operation::fused_add_rmsnorm, Dtype::bf16, Shape::of(1, 2));
  fused.options.eps = 0;
  // 256 + 1 rounds to 256 in bf16: the row is (256, 256) and its norm (1, 1); without the rounding it would not be.
  const auto bf = [](float v) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16); };
  const std::vector<std::uint16_t> hidden = {bf(1), bf(0)}, residual = {bf(256), bf(256)}, out = {bf(1), bf(1)};
  EXPECT_EQ(
      OutputReference(fused, hidden.data(), residual.data(), nullptr, nullptr).errors_of_row(out.data(), 0).max_ulp, 0);
}

// A norm's output passes through 0, where an error of the usual size would be any number of ulps.
TEST(OutputErrors, CountsUlpsOfNormsAtTheWeightAndOfLogSoftmaxAtOne) {
  Workload w = Workload::of(Operation::layernorm, Dtype::f32, Shape::of(1, 3));
  w.options.eps = 0;
  const std::vector<float> x = {-1, 0, 1}, gamma = {4, 4, 4}, beta = {0, 0, 0};
  const auto right = static_cast<float>(4 * std::sqrt(1.5L));
  const std::vector<float> y = {-right, 0x1p-20f, right};
  EXPECT_NEAR(OutputReference(w, x.data(), nullptr, gamma.data(), beta.data()).errors_of_row(y.data(), 0).max_ulp, 2,
              0.5);
  const Workload log = Workload::of(Operation::log_softmax, Dtype::f32, Shape::of(1, 2));
  const std::vector<float> logits = {50, 0}, got = {0x1p-22f, -50};
  EXPECT_NEAR(OutputReference(log, logits.data(), nullptr, nullptr, nullptr).errors_of_row(got.data(), 0).max_ulp, 2,
              0.01);
}

MomentsReference moments_with(double kappa, std::int64_t n) {
  MomentsReference r;
  r.n = n;
  r.kappa = kappa;
  r.variance = 1;
  r.mean = std::sqrt(kappa * kappa - 1);
  return r;
}

TEST(Bounds, AreTheDocumentedFormulas) {
  const MomentsReference r = moments_with(10, 1000);
  const double u = 0x1p-24;
  const auto bound = [&](MomentsMethod method, Summation s) {
    return variance_bound({method, s}, Dtype::f32, r, 0, {});
  };
  EXPECT_NEAR(bound(MomentsMethod::one_pass, {}).value / (3001 * u * 100 + u), 1, 1e-12);
  const double g = 1000 * u / (1 - 1000 * u);
  EXPECT_NEAR(bound(MomentsMethod::two_pass, {}).value / (1002 * u + g * g * 100 * (1 + 1002 * u) + u), 1, 1e-12);
  EXPECT_NEAR(bound(MomentsMethod::two_pass, {Order::pairwise, 1}).value / (13 * u + 110 * u * 110 * u + u), 1, 1e-12);
  EXPECT_NEAR(bound(MomentsMethod::two_pass, {Order::lanes, 256}).value / (14 * u + 130 * u * 130 * u + u), 1, 1e-12);
  EXPECT_EQ(bound(MomentsMethod::welford, {}).kind, BoundKind::heuristic);
  EXPECT_NEAR(bound(MomentsMethod::welford, {}).value / (1004 * u + 10000 * u + 1e8 * u * u + u), 1, 1e-12);
  EXPECT_NEAR(bound(MomentsMethod::chan, {Order::pairwise, 1}).value / (33 * u + 200 * u + 1e4 * u * u + u), 1, 1e-12);
}

TEST(Bounds, AreEmptyWhereTheProofDoesNotHold) {
  const MomentsChoice two_pass{MomentsMethod::two_pass, {}};
  EXPECT_EQ(variance_bound(two_pass, Dtype::f32, moments_with(10, 1 << 21), 0, {}).kind, BoundKind::none);  // n u > 0.1
  EXPECT_EQ(variance_bound(two_pass, Dtype::bf16, moments_with(10, 26), 0, {}).kind, BoundKind::none);
  EXPECT_EQ(variance_bound(two_pass, Dtype::f32, moments_with(10, 1000), 0, {true, false, false}).kind,
            BoundKind::none);
  EXPECT_EQ(variance_bound(two_pass, Dtype::f32, moments_with(10, 1000), 0, {false, true, false}).kind,
            BoundKind::none);
  EXPECT_EQ(variance_bound(two_pass, Dtype::f32, moments_with(inf, 1000), 0, {}).kind, BoundKind::none);
}

TEST(Bounds, ANaNExceedsThem) {
  Result r;
  r.bound = 1e-6;
  r.bound_kind = BoundKind::proven;
  r.rel_error = 1e-7;
  EXPECT_FALSE(r.bound_exceeded());
  r.rel_error = 2e-6;
  EXPECT_TRUE(r.bound_exceeded());
  r.rel_error = nan_value;
  EXPECT_TRUE(r.bound_exceeded());
}

/// Rows of every kind and size, many seeds: no proven bound may be exceeded.
TEST(Bounds, HoldOnManyRandomRows) {
  int checked = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Recipe recipe;
    recipe.n = 1 + static_cast<std::int64_t>(std::pow(2, random.uniform() * 12));
    recipe.mean = random.uniform() < 0.3 ? 0 : std::pow(10, random.uniform() * 6);
    recipe.distribution = static_cast<Distribution>(static_cast<int>(random.uniform() * 5));
    recipe.arrangement = static_cast<Arrangement>(static_cast<int>(random.uniform() * 5));
    recipe.seed = seed;
    for (const Precision& p : all_precisions()) {
      const std::vector<double> x = make_row(recipe, p.dtype);
      const MemoryRow row(x);
      const MomentsReference moments = reference_moments(row);
      if (std::isnan(moments.variance)) continue;
      std::vector<Result> results =
          compare_variance({}, p.dtype, {p.arithmetic, seed % 2 == 0, seed % 3 == 0}, row, moments, all_moments(32));
      recipe.mean = 0;
      recipe.scale = 3;
      const std::vector<double> logits = make_row(recipe, p.dtype);
      const MemoryRow logits_row(logits);
      const SoftmaxReference reference = reference_softmax(logits_row);
      for (const Exponential exponential : {Exponential::accurate, Exponential::fast}) {
        const ArithmeticChoice a{p.arithmetic, seed % 2 == 0, seed % 3 == 0, exponential};
        append(results, compare_softmax({}, Operation::softmax, p.dtype, a, logits_row, reference, all_softmax(32)));
        append(results, compare_log_sum_exp({}, p.dtype, a, logits_row, reference, all_softmax(32)));
      }
      for (const Result& r : results) {
        checked += r.bound_kind == BoundKind::proven;
        EXPECT_FALSE(r.bound_kind == BoundKind::proven && r.bound_exceeded())
            << seed << " " << r.op << " " << r.method << " " << r.order << " " << to_string(r.dtype) << " "
            << to_string(r.arithmetic.type) << " n " << r.n << " error " << *r.rel_error << " bound " << *r.bound;
      }
    }
  }
  EXPECT_GT(checked, 5000);  // else the conditions, not the bounds, were tested
}

}  // namespace
}  // namespace rowtune::stability
