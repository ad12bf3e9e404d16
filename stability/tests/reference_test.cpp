// The long-double references against 100-digit arithmetic; a planted error of 2^-40 must be caught.

#include "stability/reference.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

#include "stability/recipes.hpp"

namespace rowtune::stability {
namespace {

using Exact = boost::multiprecision::cpp_bin_float_100;

/// Sums of 64 long doubles and compensated joins: 64 * 2^-64, twice (mean and squares), and some room.
constexpr long double agreement = 0x1p-56L;

bool agrees(long double reference, const Exact& exact) {
  if (exact == 0) return reference == 0;
  return abs((Exact(reference) - exact) / exact) <= Exact(agreement);
}

struct ExactMoments {
  Exact mean, m2;
};
ExactMoments exact_moments(const std::vector<double>& x) {
  Exact sum = 0, m2 = 0;
  for (const double v : x) sum += v;
  const Exact mean = sum / x.size();
  for (const double v : x) m2 += (Exact(v) - mean) * (Exact(v) - mean);
  return {mean, m2};
}

struct Row {
  const char* name;
  Recipe recipe;
  Dtype dtype;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class MomentsReferences : public testing::TestWithParam<Row> {};

TEST_P(MomentsReferences, AgreeWith100Digits) {
  const std::vector<double> x = make_row(GetParam().recipe, GetParam().dtype);
  const MomentsReference r = reference_moments(MemoryRow(x));
  const ExactMoments exact = exact_moments(x);
  // The mean to the size of the data: it may cancel to nearly 0.
  EXPECT_TRUE(abs(Exact(r.mean) - exact.mean) <= Exact(agreement) * Exact(r.rms)) << r.mean;
  EXPECT_TRUE(agrees(r.m2, exact.m2)) << static_cast<double>(r.m2);
  EXPECT_TRUE(agrees(r.variance, exact.m2 / x.size()));
  EXPECT_TRUE(agrees(r.sample_variance, exact.m2 / (x.size() - 1)));
  EXPECT_TRUE(agrees(r.sample_sd, sqrt(exact.m2 / (x.size() - 1))));
  EXPECT_TRUE(agrees(r.kappa, sqrt(1 + exact.mean * exact.mean / (exact.m2 / x.size()))));
}

TEST_P(MomentsReferences, APlantedErrorOf2ToTheMinus40IsCaught) {
  const std::vector<double> x = make_row(GetParam().recipe, GetParam().dtype);
  const MomentsReference r = reference_moments(MemoryRow(x));
  const ExactMoments exact = exact_moments(x);
  EXPECT_FALSE(agrees(r.m2 * (1 + 0x1p-40L), exact.m2));
  EXPECT_FALSE(agrees(r.variance * (1 - 0x1p-40L), exact.m2 / x.size()));
}

Recipe recipe(Distribution distribution, std::int64_t n, double mean, double scale = 1,
              Arrangement arrangement = Arrangement::shuffled) {
  return {distribution, arrangement, n, mean, scale, 77};
}

INSTANTIATE_TEST_SUITE_P(
    Rows, MomentsReferences,
    testing::Values(Row{"few", recipe(Distribution::normal, 3, 1), Dtype::f64},
                    Row{"centred", recipe(Distribution::normal, 20000, 0), Dtype::f64},
                    Row{"far_from_zero", recipe(Distribution::normal, 20000, 1e8), Dtype::f64},
                    Row{"very_far_from_zero", recipe(Distribution::normal, 20000, 1e12), Dtype::f64},
                    Row{"huge", recipe(Distribution::normal, 1000, 10, 1e200), Dtype::f64},
                    Row{"tiny", recipe(Distribution::normal, 1000, 10, 1e-200), Dtype::f64},
                    Row{"skewed", recipe(Distribution::lognormal, 20000, 0), Dtype::f64},
                    Row{"sorted", recipe(Distribution::normal, 20000, 100, 1, Arrangement::ascending), Dtype::f64},
                    Row{"f32", recipe(Distribution::normal, 20000, 1e4), Dtype::f32},
                    Row{"f16", recipe(Distribution::activations, 5000, 0), Dtype::f16},
                    Row{"bf16", recipe(Distribution::alternating, 5000, 100), Dtype::bf16}),
    [](const auto& row) { return row.param.name; });

TEST(MomentsReference, IsExactOnConstants) {
  const std::vector<double> x(1000, 0.1);
  const MomentsReference r = reference_moments(MemoryRow(x));
  EXPECT_EQ(r.mean, static_cast<long double>(0.1));
  EXPECT_EQ(r.m2, 0);
  EXPECT_TRUE(std::isinf(r.kappa));
}

TEST(MomentsReference, NonFiniteDataGivesNaNAndCounts) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> x = {1, inf, std::numeric_limits<double>::quiet_NaN(), 2};
  const MomentsReference r = reference_moments(MemoryRow(x));
  EXPECT_EQ(r.nan_count, 1);
  EXPECT_EQ(r.inf_count, 1);
  EXPECT_TRUE(std::isnan(r.variance));
}

class SoftmaxReferences : public testing::TestWithParam<Row> {};

TEST_P(SoftmaxReferences, AgreeWith100Digits) {
  const std::vector<double> x = make_row(GetParam().recipe, GetParam().dtype);
  const SoftmaxReference r = reference_softmax(MemoryRow(x));
  Exact sum = 0;
  for (const double v : x) sum += exp(Exact(v));
  const Exact log_sum = log(sum);
  // log-sum-exp may cancel to nearly 0: against the size of what it is made of.
  EXPECT_TRUE(abs(Exact(r.log_sum_exp) - log_sum) <= Exact(agreement) * (abs(Exact(r.max)) + 1));
  for (std::size_t i = 0; i < x.size(); i += 37) {
    EXPECT_TRUE(agrees(r.softmax(x[i]), exp(Exact(x[i])) / sum)) << x[i];
    const Exact log_softmax = Exact(x[i]) - log_sum;
    EXPECT_TRUE(abs(Exact(r.log_softmax(x[i])) - log_softmax) <= Exact(agreement) * (abs(log_softmax) + 1)) << x[i];
    EXPECT_FALSE(agrees(r.softmax(x[i]) * (1 + 0x1p-40L), exp(Exact(x[i])) / sum));
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, SoftmaxReferences,
                         testing::Values(Row{"few", recipe(Distribution::normal, 3, 0), Dtype::f64},
                                         Row{"logits", recipe(Distribution::normal, 3000, 0, 3), Dtype::f32},
                                         Row{"range_of_hundreds", recipe(Distribution::normal, 2000, 0, 150),
                                             Dtype::f64},
                                         Row{"far_from_zero", recipe(Distribution::normal, 2000, -1e6), Dtype::f64},
                                         Row{"f16", recipe(Distribution::normal, 2000, 1, 5), Dtype::f16}),
                         [](const auto& row) { return row.param.name; });

TEST(SoftmaxReference, KeepsATinyLogSumExp) {
  const std::vector<double> x = {0, -40};  // log(1 + e^-40): the 1 must not swallow it
  EXPECT_TRUE(agrees(reference_softmax(MemoryRow(x)).log_sum_exp, log1p(exp(Exact(-40)))));
}

TEST(SoftmaxReference, FollowsThePromiseForNonFiniteRows) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto of = [](std::vector<double> x) { return reference_softmax(MemoryRow(x)); };
  EXPECT_TRUE(std::isnan(of({1, nan}).softmax(1)));
  EXPECT_TRUE(std::isnan(of({1, inf}).softmax(1)));
  EXPECT_EQ(of({1, inf}).log_sum_exp, inf);
  EXPECT_TRUE(std::isnan(of({nan, inf}).log_sum_exp));
  EXPECT_TRUE(std::isnan(of({-inf, -inf}).softmax(-inf)));
  EXPECT_EQ(of({-inf, -inf}).log_sum_exp, -inf);
  EXPECT_EQ(of({-inf, 3}).softmax(-inf), 0);
  EXPECT_EQ(of({-inf, 3}).softmax(3), 1);
  EXPECT_EQ(of({-inf, 3}).log_softmax(-inf), -inf);
}

}  // namespace
}  // namespace rowtune::stability
