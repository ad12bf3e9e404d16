// The fp64 oracle against Eigen in long double, by other formulas, and on special values.

#include "kernels/oracle.hpp"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "rowtune/testdata.cuh"
#include "rowtune/tolerance.cuh"

namespace rowtune {
namespace {

static_assert(std::numeric_limits<long double>::digits >= 64, "a wider reference than double is needed");

using Wide = Eigen::Array<long double, Eigen::Dynamic, 1>;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> random_row(int n, double scale, double shift, unsigned seed) {
  std::vector<double> row(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) row[static_cast<std::size_t>(i)] = shift + scale * test_value(test_input, seed, i, n);
  return row;
}

Wide wide(const std::vector<double>& row) {
  return Eigen::Map<const Eigen::ArrayXd>(row.data(), static_cast<Eigen::Index>(row.size())).cast<long double>();
}

Workload workload(Operation op, Dtype dtype = Dtype::f32) { return Workload::of(op, dtype, Shape::of(1, 1)); }

/// n u of relative error, for sums of n positive terms in double, and some for exp.
void expect_close(const std::vector<double>& got, const Wide& right, long double scale = 0) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const long double value = right[static_cast<Eigen::Index>(i)];
    const long double tolerance =
        (static_cast<long double>(got.size()) + 10) * 0x1p-53L * std::max(std::fabs(value), scale);
    ASSERT_TRUE(std::fabs(got[i] - value) <= tolerance) << "element " << i << ": " << got[i] << " for " << value;
  }
}

class OracleRows : public testing::TestWithParam<std::tuple<int, double, double>> {
 protected:
  std::vector<double> row(unsigned seed = 1) const {
    const auto& [n, scale, shift] = GetParam();
    return random_row(n, scale, shift, seed);
  }
};
INSTANTIATE_TEST_SUITE_P(Ragged, OracleRows,
                         testing::Combine(testing::Values(1, 2, 7, 100, 1025), testing::Values(1e-3, 1.0, 30.0),
                                          testing::Values(0.0, -1e4, 1e7)));

TEST_P(OracleRows, SoftmaxIsTheShiftInvariantQuotient) {
  // By log-sum-exp around the mean, not around the maximum.
  const Wide x = wide(row());
  const long double centre = x.mean();
  const Wide log = (x - centre) - std::log((x - centre).exp().sum());
  expect_close(reference_row(workload(Operation::softmax), row(), {}, nullptr, nullptr).output, log.exp());
  // exp of a range of 200 gives log errors of some u of the range.
  expect_close(reference_row(workload(Operation::log_softmax), row(), {}, nullptr, nullptr).output, log,
               std::max(1.0L, x.maxCoeff() - x.minCoeff()));
  EXPECT_EQ(reference_row(workload(Operation::softmax), row(), {}, nullptr, nullptr).spread,
            static_cast<double>(x.maxCoeff() - x.minCoeff()));
}

TEST_P(OracleRows, LayernormHasTheMomentsOfTheRow) {
  Workload w = workload(Operation::layernorm);
  w.options.eps = 1e-5;
  const std::vector<double> weight = row(2), bias = row(3);
  const Wide x = wide(row());
  // From pairwise differences: sum over i < j of (x_i - x_j)^2 = n^2 var. No mean enters.
  long double pairs = 0;
  for (Eigen::Index i = 0; i < x.size(); ++i) pairs += (x.tail(x.size() - i) - x[i]).square().sum();
  const auto n = static_cast<long double>(x.size());
  const long double rstd = 1 / std::sqrt(pairs / (n * n) + static_cast<long double>(w.options.eps));
  const Wide right = (x - x[0] - (x - x[0]).mean()) * rstd * wide(weight) + wide(bias);
  const long double rms = std::sqrt(x.square().mean());
  const RowReference got = reference_row(w, row(), {}, weight.data(), bias.data());
  const long double scale = (1 + rms * rstd) * (wide(weight).abs().maxCoeff() * 4 + wide(bias).abs().maxCoeff());
  expect_close(got.output, right, scale);
  EXPECT_NEAR(got.spread / static_cast<double>(rms * rstd), 1, 1e-9 + 1e-14 * static_cast<double>(rms * rstd));
}

TEST_P(OracleRows, RmsNormDividesByTheRootMeanSquare) {
  Workload w = workload(Operation::rmsnorm);
  const std::vector<double> weight = row(2);
  const Wide x = wide(row());
  const long double rms = std::sqrt(x.matrix().squaredNorm() / static_cast<long double>(x.size()) +
                                    static_cast<long double>(w.options.eps));
  expect_close(reference_row(w, row(), {}, weight.data(), nullptr).output, x / rms * wide(weight));
  expect_close(reference_row(w, row(), {}, nullptr, nullptr).output, x / rms);
}

TEST(Oracle, FusedNormalisesTheRoundedSum) {
  for (Dtype dtype : tensor_dtypes()) {
    const Workload w = workload(Operation::fused_add_rmsnorm, dtype);
    std::vector<double> hidden = random_row(100, 1, 0, 1), residual = random_row(100, 1, 3, 2);
    std::vector<std::byte> memory(100 * sizeof(float));
    for (auto* row : {&hidden, &residual})
      for (std::size_t i = 0; i < row->size(); ++i) {
        store_element(dtype, memory.data(), static_cast<std::int64_t>(i), (*row)[i]);
        (*row)[i] = load_element(dtype, memory.data(), static_cast<std::int64_t>(i));
      }
    const RowReference got = reference_row(w, hidden, residual, nullptr, nullptr);
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      store_element(dtype, memory.data(), 0, hidden[i] + residual[i]);  // exact in double for these
      EXPECT_EQ(got.new_residual[i], load_element(dtype, memory.data(), 0)) << to_string(dtype) << ' ' << i;
    }
    Workload norm = w;
    norm.op = Operation::rmsnorm;
    EXPECT_EQ(got.output, reference_row(norm, got.new_residual, {}, nullptr, nullptr).output);
  }
}

TEST(Oracle, GivesNaNRowsByTheRule) {
  for (Operation op : {Operation::softmax, Operation::log_softmax})
    for (const std::vector<double>& row : std::vector<std::vector<double>>{
             {1, nan, 2}, {1, inf, 2}, {-inf, nan, 5}, {-inf, -inf}, {-inf}, {inf}, {inf, -inf, nan}})
      for (double y : reference_row(workload(op), row, {}, nullptr, nullptr).output)
        EXPECT_TRUE(std::isnan(y)) << to_string(op);
  const auto softmax = reference_row(workload(Operation::softmax), {-inf, 3, -inf, 3}, {}, nullptr, nullptr).output;
  EXPECT_EQ(softmax, (std::vector<double>{0, 0.5, 0, 0.5}));
  const auto log = reference_row(workload(Operation::log_softmax), {-inf, 7}, {}, nullptr, nullptr).output;
  EXPECT_EQ(log, (std::vector<double>{-inf, 0}));
  EXPECT_EQ(reference_row(workload(Operation::softmax), {-1e30, -1e30}, {}, nullptr, nullptr).output,
            (std::vector<double>{0.5, 0.5}));
}

TEST(Oracle, KeepsAConstantRowAtZero) {
  Workload w = workload(Operation::layernorm);
  for (double value : {0.0, 1000.0, -6e4})
    for (double y : reference_row(w, std::vector<double>(769, value), {}, nullptr, nullptr).output) EXPECT_EQ(y, 0);
}

TEST(OracleElements, RoundTripAllValuesOf16Bits) {
  for (Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (int i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const double value = load_element(dtype, &bits, 0);
      if (dtype == Dtype::bf16) {
        const auto right = std::bit_cast<float>(static_cast<std::uint32_t>(i) << 16);
        ASSERT_TRUE(std::isnan(right) ? std::isnan(value) : value == right) << i;
      } else if (std::isfinite(value)) {  // sign, 5 bits of exponent, 10 of fraction
        const int e = i >> 10 & 31, f = i & 1023;
        const double right = (i & 0x8000 ? -1 : 1) * (e == 0 ? f * 0x1p-24 : std::ldexp(1024 + f, e - 25));
        ASSERT_EQ(value, right) << i;
      } else {
        ASSERT_EQ(i >> 10 & 31, 31) << i;
        ASSERT_EQ(std::isnan(value), (i & 1023) != 0) << i;
      }
      std::uint16_t back = 0;
      store_element(dtype, &back, 0, value);
      if (std::isnan(value))
        ASSERT_TRUE(std::isnan(load_element(dtype, &back, 0))) << i;
      else
        ASSERT_EQ(back, bits) << i;
    }
}

TEST(OracleElements, RoundFromDoubleOnce) {
  // 1 + 2^-8 + 2^-40 is above the midpoint of bf16; through float it would become the midpoint and go to even, 1.
  std::uint16_t bits = 0;
  store_element(Dtype::bf16, &bits, 0, 1 + 0x1p-8 + 0x1p-40);
  EXPECT_EQ(load_element(Dtype::bf16, &bits, 0), 1 + 0x1p-7);
  store_element(Dtype::bf16, &bits, 0, 1 + 0x1p-8);
  EXPECT_EQ(load_element(Dtype::bf16, &bits, 0), 1);
  store_element(Dtype::f16, &bits, 0, 65519.999);
  EXPECT_EQ(load_element(Dtype::f16, &bits, 0), 65504);
  store_element(Dtype::f16, &bits, 0, 65520);
  EXPECT_EQ(load_element(Dtype::f16, &bits, 0), inf);
  store_element(Dtype::f16, &bits, 0, -0x1p-25);
  EXPECT_EQ(bits, 0x8000);
  store_element(Dtype::f16, &bits, 0, 0x1.8p-25);
  EXPECT_EQ(load_element(Dtype::f16, &bits, 0), 0x1p-24);
  store_element(Dtype::f16, &bits, 0, 0x1.ffep-15);  // rounds up into the normal numbers
  EXPECT_EQ(load_element(Dtype::f16, &bits, 0), 0x1p-14);
}

TEST(OracleCheck, FailsForNaNAndForTheWrongInfinity) {
  const Workload w = workload(Operation::softmax);
  double ulp = 0;
  EXPECT_FALSE(check_element(w, nan, 0.5, 1, 1, 1, &ulp));
  EXPECT_TRUE(std::isnan(ulp));
  EXPECT_FALSE(check_element(w, 0.5, nan, 1, 1, 1, &ulp));
  EXPECT_TRUE(std::isnan(ulp));
  EXPECT_TRUE(check_element(w, nan, nan, 1, 1, 1, &ulp));
  EXPECT_EQ(ulp, 0);
  EXPECT_FALSE(check_element(w, inf, -inf, 1, 1, 1, &ulp));
  EXPECT_TRUE(check_element(w, -inf, -inf, 1, 1, 1, &ulp));
  EXPECT_FALSE(check_element(w, inf, 0.5, 1, 1, 1, &ulp));
  EXPECT_TRUE(ulp > 1e30);
  EXPECT_FALSE(check_element(w, 0.5, 0.25, nan, 1, 1, &ulp));  // a tolerance that is no number allows nothing
}

TEST(OracleCheck, AcceptsAnInfinityWhereTheDtypeEnds) {
  const Workload w = workload(Operation::log_softmax, Dtype::f16);
  double ulp = 0;
  EXPECT_TRUE(check_element(w, -inf, -125505.0, 100, 1, 10, &ulp));
  EXPECT_EQ(ulp, 0);
  EXPECT_FALSE(check_element(w, inf, -125505.0, 100, 1, 10, &ulp));
  EXPECT_FALSE(check_element(w, -inf, -65000.0, 100, 1, 10, &ulp));
  EXPECT_NEAR(ulp, (65520 - 65000) / 32.0, 1e-9);
  EXPECT_FALSE(check_element(w, -65504, -125505.0, 100, 1, 10, &ulp));
}

TEST_P(OracleRows, ArgmaxIsTheFirstMaximumAndLogSumExpIsShiftInvariant) {
  const Wide x = wide(row());
  Eigen::Index place = 0;
  x.maxCoeff(&place);
  const auto got = reference_row(workload(Operation::argmax_logsumexp), row(), {}, nullptr, nullptr);
  ASSERT_EQ(got.output.size(), 2u);
  EXPECT_EQ(got.output[0], static_cast<double>(place));
  const long double centre = x.mean();  // around the mean, not around the maximum
  const long double right = centre + std::log((x - centre).exp().sum());
  EXPECT_NEAR(static_cast<double>(got.output[1] - right), 0, 1e-15 * std::max(1.0, std::fabs(got.output[1])) * 4);
  EXPECT_EQ(got.spread, static_cast<double>(x.maxCoeff() - x.minCoeff()));
}

TEST(OracleSpecials, ArgmaxTakesTheFirstOfEqualsAndTheFirstNaN) {
  const auto of = [](const std::vector<double>& x) {
    return reference_row(workload(Operation::argmax_logsumexp), x, {}, nullptr, nullptr).output;
  };
  EXPECT_EQ(of({1, 3, 3, 2}), (std::vector<double>{1, 3 + std::log(2 + std::exp(-2.0) + std::exp(-1.0))}));
  EXPECT_EQ(of({-inf, -inf}), (std::vector<double>{0, -inf}));
  EXPECT_EQ(of({1, inf, inf}), (std::vector<double>{1, inf}));
  EXPECT_EQ(of({-inf, 2}), (std::vector<double>{1, 2}));
  for (const auto& row : {std::vector<double>{1, inf, nan, nan}, {inf, -inf, nan}, {-inf, -inf, nan}}) {
    EXPECT_EQ(of(row)[0], 2);
    EXPECT_TRUE(std::isnan(of(row)[1]));
  }
  EXPECT_TRUE(of({}).empty()) << "no element, nothing to say";
}

TEST(OracleCheck, AnIndexIsExactAndALogSumExpErrsAsInF32) {
  double ulp = 0;
  const Workload w = workload(Operation::argmax_logsumexp, Dtype::bf16);
  const std::int32_t index = 152063;
  const float value = 12.5f;
  std::byte row[8];
  std::memcpy(row, &index, 4);
  std::memcpy(row + 4, &value, 4);
  EXPECT_EQ(load_output(w, row, 0), 152063);
  EXPECT_EQ(load_output(w, row, 1), 12.5);
  EXPECT_TRUE(check_output(w, 0, 152063, 152063, 8, 1, 10, &ulp));
  EXPECT_FALSE(check_output(w, 0, 152062, 152063, 8, 1, 10, &ulp));
  EXPECT_TRUE(check_output(w, 1, 12.5 + 1e-6, 12.5, 8, 1, 10, &ulp));
  EXPECT_FALSE(check_output(w, 1, 12.5 + 1e-3, 12.5, 8, 1, 10, &ulp)) << "far less than an ulp of bf16";
}

TEST(OracleCheck, MeasuresUlpsOfTheDtypeAtTheReference) {
  double ulp = 0;
  for (Dtype dtype : tensor_dtypes())
    for (double reference : {1.0, 0.3, 1e-3, 2e-6, 100.0}) {
      const double unit = ulp_at(static_cast<int>(dtype), reference);
      check_element(workload(Operation::softmax, dtype), reference + 3 * unit, reference, 1, 1, 1, &ulp);
      EXPECT_NEAR(ulp, 3, 1e-6) << to_string(dtype) << ' ' << reference;
    }
}

TEST(OracleCheck, CountsUlpsOfNormsAtTheWeightAndOfLogSoftmaxAtOne) {
  double ulp = 0;
  check_element(workload(Operation::layernorm), 0x1p-20, 0, 1, 4, 1, &ulp);
  EXPECT_EQ(ulp, 2);
  check_element(workload(Operation::log_softmax), 0x1p-22, 0, 1, 1, 1, &ulp);
  EXPECT_EQ(ulp, 2);
}

TEST(OracleCheck, AllowsHalfAnUlpAndTheDerivedErrorOnly) {
  double ulp = 0;
  const Workload w = workload(Operation::softmax, Dtype::bf16);
  const double reference = 0.75, unit = 0x1p-8;
  EXPECT_TRUE(check_element(w, reference + 0.5 * unit, reference, 8, 1, 10, &ulp));
  EXPECT_FALSE(check_element(w, reference + 0.51 * unit, reference, 8, 1, 10, &ulp));
  Workload copy = w;
  copy.op = Operation::copy;
  EXPECT_FALSE(check_element(copy, std::nextafter(reference, 1), reference, 8, 1, 10, &ulp));
  EXPECT_TRUE(check_element(copy, reference, reference, 8, 1, 10, &ulp));
}

}  // namespace
}  // namespace rowtune
