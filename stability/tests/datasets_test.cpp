// The embedded data sets: certified statistics against exact rationals of the published decimals, and the statistics
// of the rounded data, in every dtype, against exact rationals of the rounded numbers.

#include "stability/datasets.hpp"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "stability/decimal.hpp"
#include "stability/embedded.hpp"
#include "stability/measure.hpp"
#include "stability/reference.hpp"

namespace rowtune::stability {
namespace {

using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;
using Real = boost::multiprecision::cpp_bin_float_100;

cpp_rational rational_of_decimal(const std::string& text) {
  std::string digits;
  unsigned places = 0;
  bool point = false;
  for (const char c : text) {
    if (c == '.') {
      point = true;
    } else {
      digits += c;
      places += point;
    }
  }
  const bool negative = digits.front() == '-';
  if (negative) digits.erase(0, 1);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));  // a leading 0 would mean octal
  const cpp_rational value(cpp_int(digits), boost::multiprecision::pow(cpp_int(10), places));
  return negative ? cpp_rational(-value) : value;
}

cpp_rational rational_of_double(double x) {
  int exponent = 0;
  const auto fraction = static_cast<long long>(std::scalbn(std::frexp(x, &exponent), 53));
  cpp_rational value(fraction);
  const cpp_rational power(boost::multiprecision::pow(cpp_int(2), static_cast<unsigned>(std::abs(exponent - 53))));
  return exponent >= 53 ? cpp_rational(value * power) : cpp_rational(value / power);
}

struct Exact {
  cpp_rational mean, m2;
};
Exact exact_of(const std::vector<cpp_rational>& x) {
  cpp_rational sum = 0, squares = 0;
  for (const cpp_rational& v : x) {
    sum += v;
    squares += v * v;
  }
  const cpp_rational mean = sum / static_cast<long long>(x.size());
  return {mean, squares - sum * mean};  // no rounding anywhere: the textbook formula is exact
}

Real real(const cpp_rational& r) { return Real(numerator(r)) / Real(denominator(r)); }

class CertifiedSets : public testing::TestWithParam<int> {
 protected:
  const CertifiedSet& set() const { return certified_sets()[static_cast<std::size_t>(GetParam())]; }
};

TEST_P(CertifiedSets, StatisticsAreThoseOfThePublishedDecimals) {
  std::vector<cpp_rational> x;
  for (const std::string& text : set().values) x.push_back(rational_of_decimal(text));
  const Exact exact = exact_of(x);
  const Real sd = sqrt(real(exact.m2) / (x.size() - 1));
  // Given to 20 significant digits.
  EXPECT_TRUE(abs(Real(set().mean) / real(exact.mean) - 1) <= Real("1e-19"));
  EXPECT_TRUE(abs(Real(set().sample_sd) / sd - 1) <= Real("1e-19"));
}

TEST_P(CertifiedSets, ReferencesMeetExactRationalsInEveryDtype) {
  for (const Dtype dtype : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const std::vector<double> data = rounded_values(set(), dtype);
    if (!std::all_of(data.begin(), data.end(), [](double v) { return std::isfinite(v); })) continue;
    std::vector<cpp_rational> x;
    for (const double v : data) x.push_back(rational_of_double(v));
    const Exact exact = exact_of(x);
    const MomentsReference r = reference_moments(MemoryRow(data));
    const auto close = [](long double got, const Real& right, double tolerance) {
      return right == 0 ? got == 0 : abs(Real(got) / right - 1) <= Real(tolerance);
    };
    EXPECT_TRUE(close(r.mean, real(exact.mean), 0x1p-60)) << to_string(dtype);
    EXPECT_TRUE(close(r.m2, real(exact.m2), 0x1p-56)) << to_string(dtype);
    EXPECT_FALSE(exact.m2 != 0 && close(r.m2 * (1 + 0x1p-40L), real(exact.m2), 0x1p-56)) << "planted error not seen";
  }
}

/// The statistics and ceilings of the rounded data, as computed elsewhere to 20 digits.
TEST_P(CertifiedSets, RoundedStatisticsAndCeilingsMatchTheRecordedOnes) {
  const auto recorded = nlohmann::json::parse(embedded("data/nist/reference_by_dtype.json")).at(set().name);
  const std::pair<const char*, Dtype> dtypes[] = {
      {"fp64", Dtype::f64}, {"fp32", Dtype::f32}, {"fp16", Dtype::f16}, {"bf16", Dtype::bf16}};
  for (const auto& [name, dtype] : dtypes) {
    const auto& facts = recorded.at(name);
    const std::vector<double> data = rounded_values(set(), dtype);
    if (facts.is_string()) {
      EXPECT_EQ(facts, "overflow");
      EXPECT_TRUE(std::any_of(data.begin(), data.end(), [](double v) { return std::isinf(v); })) << name;
      continue;
    }
    const MomentsReference r = reference_moments(MemoryRow(data));
    const long double sd = decimal_to_long_double(facts.at("sd_sample").get<std::string>());
    if (sd == 0) {
      EXPECT_EQ(r.m2, 0) << name;
    } else {
      EXPECT_TRUE(std::fabs(r.sample_sd / sd - 1) <= 1e-16L) << name;
    }
    const long double certified = decimal_to_long_double(set().sample_sd);
    const double ceiling = lre_of(static_cast<double>(std::fabs(r.sample_sd / certified - 1)));
    EXPECT_NEAR(ceiling, std::min(most_lre, facts.at("lre_sd_ceiling").get<double>()), 0.006) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(StRD, CertifiedSets, testing::Range(0, 9),
                         [](const auto& row) { return certified_sets()[static_cast<std::size_t>(row.param)].name; });

TEST(Logits, Are2500RowsOf10) {
  ASSERT_EQ(public_logits().size(), 2500u);
  for (const auto& row : public_logits()) ASSERT_EQ(row.size(), 10u);
  EXPECT_EQ(public_logits().front().front(), "9.86809254");
}

}  // namespace
}  // namespace rowtune::stability
