#include "tuner/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace rowtune {
namespace {

TEST(Median, OddAndEven) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_THROW(median({}), std::invalid_argument);
}

TEST(BinomialHalf, AgreesWithCounting) {
  EXPECT_DOUBLE_EQ(binomial_half_cdf(5, 0), 1.0 / 32);
  EXPECT_NEAR(binomial_half_cdf(10, 2), 56.0 / 1024, 1e-14);  // 1 + 10 + 45
  EXPECT_EQ(binomial_half_cdf(4, 4), 1);
  EXPECT_EQ(binomial_half_cdf(4, -1), 0);
  EXPECT_NEAR(binomial_half_cdf(5001, 2500), 0.5, 1e-9);  // symmetric, and beyond the range of 2^-n
}

// Ranks from a table of order-statistic intervals for the median (David & Nagaraja): n = 10 -> 2nd and 9th with 97.85
// %, n = 20 -> 6th and 15th with 95.86 %, n = 6 -> 1st and 6th with 96.88 %.
TEST(Interval, TextbookRanks) {
  std::vector<double> ten, twenty, six;
  for (int i = 1; i <= 20; ++i) {
    if (i <= 6) six.push_back(i);
    if (i <= 10) ten.push_back(i);
    twenty.push_back(i);
  }
  const Estimate a = estimate_median(ten), b = estimate_median(twenty), c = estimate_median(six);
  EXPECT_EQ(a.low, 2);
  EXPECT_EQ(a.high, 9);
  EXPECT_NEAR(a.coverage, 0.9785, 5e-5);
  EXPECT_EQ(b.low, 6);
  EXPECT_EQ(b.high, 15);
  EXPECT_NEAR(b.coverage, 0.9586, 5e-5);
  EXPECT_EQ(c.low, 1);
  EXPECT_EQ(c.high, 6);
  EXPECT_NEAR(c.coverage, 0.96875, 1e-12);
}

TEST(Interval, TooFewSamplesSayHowLittleTheyCover) {
  const Estimate e = estimate_median({1, 2, 3, 4});
  EXPECT_EQ(e.low, 1);
  EXPECT_EQ(e.high, 4);
  EXPECT_NEAR(e.coverage, 0.875, 1e-12);
  EXPECT_EQ(estimate_median({1}).coverage, 0);
}

// The promise of a 95 % interval, on a skewed distribution whose median is known: exp(1), median log 2. Of 2,000 sets
// the count that brackets it is binomial with p >= 0.95: six standard deviations below are 0.9208.
TEST(Interval, CoversTheMedianOfASkewedDistribution) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> skewed(1.0);
  for (int n : {6, 9, 25, 60}) {
    int covered = 0;
    const int sets = 2000;
    for (int i = 0; i < sets; ++i) {
      std::vector<double> x(static_cast<std::size_t>(n));
      for (double& v : x) v = skewed(random);
      const Estimate e = estimate_median(x);
      covered += e.low <= std::log(2.0) && std::log(2.0) <= e.high;
    }
    const double p = 0.95;
    EXPECT_GE(covered, sets * p - 6 * std::sqrt(sets * p * (1 - p))) << "n = " << n;
  }
}

int samples_until_finished(SettledEstimate& criterion, const std::function<double()>& draw, double seconds_each) {
  int n = 0;
  while (!criterion.finished() && n < 100000) criterion.add(draw(), seconds_each * ++n);
  return n;
}

TEST(SettledEstimate, QuietTimingsStopAtTheMinimum) {
  SettledEstimate criterion({});
  const int n = samples_until_finished(
      criterion, [] { return 10.0; }, 1e-3);
  EXPECT_EQ(n, SamplingLimits{}.min_samples);
  EXPECT_EQ(criterion.stop(), Stop::settled);
  EXPECT_EQ(criterion.estimate().median, 10.0);
}

TEST(SettledEstimate, ModerateNoiseTakesMoreSamplesAndSettles) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(100.0, 0.8);
  SettledEstimate criterion({});
  const int n = samples_until_finished(
      criterion, [&] { return noise(random); }, 1e-6);
  EXPECT_GT(n, SamplingLimits{}.min_samples);
  EXPECT_EQ(criterion.stop(), Stop::settled);
  const Estimate e = criterion.estimate();
  EXPECT_LE(0.5 * (e.high - e.low), 0.005 * e.median);
}

TEST(SettledEstimate, HopelessNoiseStopsLongBeforeTheLimit) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> noise(1.0, 3.0);
  SamplingLimits limits;
  limits.max_samples = 1000;
  limits.max_seconds = 1e9;
  SettledEstimate criterion(limits);
  const int n = samples_until_finished(
      criterion, [&] { return noise(random); }, 1e-3);
  EXPECT_LE(n, 40);
  EXPECT_EQ(criterion.stop(), Stop::out_of_reach);
}

TEST(SettledEstimate, TimeEndsIt) {
  SamplingLimits limits;
  limits.max_seconds = 1;
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> noise(1.0, 3.0);
  const auto samples_at = [&](double seconds_each) {
    SettledEstimate criterion(limits);
    const int n = samples_until_finished(
        criterion, [&] { return noise(random); }, seconds_each);
    EXPECT_EQ(criterion.stop(), Stop::out_of_reach);
    return n;
  };
  EXPECT_EQ(samples_at(0.1), 10);
  EXPECT_EQ(samples_at(0.3), limits.min_samples);  // an interval is worth four times the limit
  EXPECT_EQ(samples_at(0.9), 5);
  EXPECT_EQ(samples_at(10.0), 3);  // never fewer
}

TEST(SettledEstimate, CountEndsIt) {
  SamplingLimits limits;
  limits.max_samples = 15;
  int i = 0;
  SettledEstimate criterion(limits);
  EXPECT_EQ(samples_until_finished(
                criterion, [&] { return ++i % 2 == 0 ? 1.0 : 1.2; }, 1e-6),
            15);
  EXPECT_EQ(criterion.stop(), Stop::out_of_reach);
}

TEST(SettledEstimate, BeatenAtSightAndByInterval) {
  SettledEstimate far({}, 10.0);
  EXPECT_EQ(samples_until_finished(
                far, [] { return 14.0; }, 1e-6),
            3);
  EXPECT_EQ(far.stop(), Stop::beaten);

  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> noise(11.0, 12.5);
  SettledEstimate near({}, 10.0);
  EXPECT_EQ(samples_until_finished(
                near, [&] { return noise(random); }, 1e-6),
            SamplingLimits{}.min_samples);
  EXPECT_EQ(near.stop(), Stop::beaten);
}

TEST(SettledEstimate, ABetterOrEqualTimeIsNeverBeaten) {
  for (double time : {5.0, 9.9, 10.0, 10.2}) {
    SettledEstimate criterion({}, 10.0);
    samples_until_finished(
        criterion, [&] { return time; }, 1e-6);
    EXPECT_EQ(criterion.stop(), Stop::settled) << time;
  }
}

TEST(SettledEstimate, RefusesWhatIsNotATime) {
  SettledEstimate criterion({});
  EXPECT_THROW(criterion.add(std::numeric_limits<double>::quiet_NaN(), 0), std::invalid_argument);
  EXPECT_THROW(criterion.add(std::numeric_limits<double>::infinity(), 0), std::invalid_argument);
  EXPECT_THROW(criterion.add(0, 0), std::invalid_argument);
  EXPECT_THROW(criterion.add(-1, 0), std::invalid_argument);
}

TEST(SteadyState, EndsWhenSamplesStopFalling) {
  SteadyState warm_up(10.0);
  for (double falling : {20.0, 15.0, 12.0, 11.0}) {
    warm_up.add(falling, 0.1);
    EXPECT_FALSE(warm_up.reached()) << falling;
  }
  warm_up.add(10.95, 0.1);  // within a hundredth
  EXPECT_TRUE(warm_up.reached());
}

TEST(SteadyState, LimitsEndIt) {
  SteadyState by_time(1.0), by_count(1e9, 3);
  by_time.add(5.0, 2.0);
  EXPECT_TRUE(by_time.reached());
  by_count.add(100, 0);
  by_count.add(50, 0);
  EXPECT_FALSE(by_count.reached());
  by_count.add(25, 0);
  EXPECT_TRUE(by_count.reached());
}

using Verdict = PairedComparison::Verdict;

TEST(Paired, TellsASmallDifferenceUnderCommonDrift) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 0.003);
  std::vector<double> a, b;
  for (int i = 0; i < 40; ++i) {
    const double drift = 10.0 * (1 + 0.5 * i / 40.0);  // 50 %: unpaired intervals would overlap entirely
    a.push_back(drift * 1.02 * (1 + noise(random)));
    b.push_back(drift * (1 + noise(random)));
  }
  EXPECT_EQ(compare_paired(a, b, 0.005, 0.99).verdict, Verdict::slower);
  EXPECT_EQ(compare_paired(b, a, 0.005, 0.99).verdict, Verdict::faster);
  EXPECT_NEAR(compare_paired(a, b, 0.005, 0.99).ratio, 1.02, 0.003);
}

TEST(Paired, TieWithinTheMarginAndUnsureWithoutEvidence) {
  std::vector<double> same(30, 5.0), close(30, 5.01), other{5, 6, 5, 6};
  EXPECT_EQ(compare_paired(close, same, 0.005, 0.95).verdict, Verdict::tie);
  EXPECT_EQ(compare_paired(other, {5.5, 5.5, 5.5, 5.5}, 0.005, 0.95).verdict, Verdict::unsure);
  EXPECT_EQ(compare_paired({1, 1, 1}, {2, 2, 2}, 0.005, 0.95).verdict, Verdict::unsure);  // 3 samples cover 75 %
  EXPECT_THROW(compare_paired({1}, {1, 2}, 0.005, 0.95), std::invalid_argument);
}

// Two equal kernels must not be told apart more often than the confidence allows: 5 % of 1,000 repetitions, plus six
// standard deviations.
TEST(Paired, EqualKernelsAreRarelyToldApart) {
  std::mt19937_64 random(6);
  std::lognormal_distribution<double> noise(0, 0.05);
  int told_apart = 0;
  const int repetitions = 1000;
  for (int i = 0; i < repetitions; ++i) {
    std::vector<double> a(20), b(20);
    for (double& v : a) v = noise(random);
    for (double& v : b) v = noise(random);
    const Verdict v = compare_paired(a, b, 0.0, 0.95).verdict;
    told_apart += v == Verdict::faster || v == Verdict::slower;
  }
  EXPECT_LE(told_apart, repetitions * 0.05 + 6 * std::sqrt(repetitions * 0.05 * 0.95));
}

}  // namespace
}  // namespace rowtune
