#include "stability/thresholds.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "stability/formats.hpp"

namespace rowtune::stability {
namespace {

TEST(Thresholds, OneDominantLogitBreaksWhereExpOverflows) {
  EXPECT_NEAR(find_threshold(ThresholdKind::dominant, Dtype::f32, false, 16).found, 88.7228, 5e-5);
  EXPECT_NEAR(find_threshold(ThresholdKind::dominant, Dtype::f16, false, 16).found, 11.094, 5e-4);
  EXPECT_NEAR(find_threshold(ThresholdKind::dominant, Dtype::f64, false, 16).found, 709.7827, 5e-5);
}

TEST(Thresholds, EqualLogitsBreakEarlierByTheLogarithmOfTheirNumber) {
  const double one = find_threshold(ThresholdKind::dominant, Dtype::f32, false, 16).found;
  for (const std::int64_t n : {4, 100, 4096}) {
    const double many = find_threshold(ThresholdKind::equal, Dtype::f32, false, n).found;
    EXPECT_NEAR(one - many, std::log(static_cast<double>(n)), 2e-5) << n;
  }
}

TEST(Thresholds, TheLogitBeforeIsStillFine) {
  const Threshold t = find_threshold(ThresholdKind::dominant, Dtype::f32, false, 16);
  const double before = from_ordinal(Dtype::f32, ordinal_of(Dtype::f32, t.found) - 1);
  EXPECT_TRUE(std::isfinite(std::exp(static_cast<float>(before))));
  EXPECT_TRUE(std::isinf(std::exp(static_cast<float>(t.found))));
}

TEST(Thresholds, TheNegativeSideVanishesEarlierWhenFlushed) {
  EXPECT_NEAR(find_threshold(ThresholdKind::equal_negative, Dtype::f32, false, 8).found, 103.972, 5e-4);
  EXPECT_NEAR(find_threshold(ThresholdKind::equal_negative, Dtype::f32, true, 8).found, 87.3366, 5e-5);
}

}  // namespace
}  // namespace rowtune::stability
