// Every algorithm of the cpu device, in all legal and degenerate configs, on every SIMD target here: right on ragged
// shapes, strides and offsets, in place, with and without weights, on hostile values; the same bits twice; nothing
// outside the rows touched.

#include <cmath>
#include <limits>
#include <map>

#include "kernels/tests/cpu_support.hpp"

namespace rowtune::cpu {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct OpAndDtype {
  Operation op;
  Dtype dtype;
};

std::vector<OpAndDtype> all_pairs(bool norms_only) {
  std::vector<OpAndDtype> all;
  for (Operation op : all_operations())
    for (Dtype dtype : tensor_dtypes())
      if (is_norm(op) || !norms_only) all.push_back({op, dtype});
  return all;
}

std::string name_of(const testing::TestParamInfo<OpAndDtype>& info) {
  return to_string(info.param.op) + "_" + to_string(info.param.dtype);
}

class CpuKernels : public testing::TestWithParam<OpAndDtype> {
 protected:
  Workload workload(Shape shape) const { return Workload::of(GetParam().op, GetParam().dtype, shape, Regime::warm); }

  /// All configs on one workload; stops at the first failure.
  void check_all(const Workload& w, const Data& data, bool eligible_only = false) {
    Trial trial(w, data);
    for (const Config& config : legal_and_degenerate_configs(w, trial.info(), eligible_only)) {
      trial.check(config);
      if (HasFatalFailure()) return;
    }
  }
};

class CpuNorms : public CpuKernels {};
INSTANTIATE_TEST_SUITE_P(All, CpuKernels, testing::ValuesIn(all_pairs(false)), name_of);
INSTANTIATE_TEST_SUITE_P(All, CpuNorms, testing::ValuesIn(all_pairs(true)), name_of);

TEST_P(CpuKernels, AreRightOnRaggedShapes) {
  const std::string best = simd_target();
  on_every_target([&] {
    for (std::int64_t cols :
         {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 769, 1000, 1023, 1025, 4097}) {
      // The best target takes them all, the others a selection. More rows for short rows: groups have a remainder
      // there.
      if (simd_target() != best && cols % 16 != 1 && cols != 7 && cols != 64) continue;
      for (std::int64_t rows : cols <= 129 ? std::vector<std::int64_t>{1, 5, 67} : std::vector<std::int64_t>{3}) {
        check_all(workload(Shape::of(rows, cols)), nearly_normal_data(cols));
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(CpuKernels, HonourStridesAndOffsets) {
  on_every_target([&] {
    for (std::int64_t cols : {1, 15, 32, 64, 100, 255, 1000})
      for (const Shape shape : {Shape{5, cols, cols + 1, 0}, Shape{5, cols, cols + 64, 1}, Shape{3, cols, cols, 3},
                                Shape{2, cols, 2 * cols + 7, 17}}) {
        check_all(workload(shape), nearly_normal_data(cols));
        if (HasFatalFailure()) return;
      }
  });
}

TEST_P(CpuKernels, WorkInPlaceAndApart) {
  on_every_target([&] {
    for (bool in_place : {false, true})
      for (std::int64_t cols : {3, 64, 257, 1025}) {
        Workload w = workload(Shape::of(9, cols));
        w.options.in_place = in_place;
        check_all(w, nearly_normal_data(cols));
        if (HasFatalFailure()) return;
      }
  });
}

TEST_P(CpuNorms, TakeWeightAndBiasOrNone) {
  on_every_target([&] {
    for (bool weight : {false, true})
      for (bool bias : {false, true}) {
        if (bias && GetParam().op != Operation::layernorm) continue;
        for (std::int64_t cols : {5, 64, 1001}) {
          Workload w = workload(Shape::of(6, cols));
          w.options.weight = weight;
          w.options.bias = bias;
          check_all(w, nearly_normal_data(cols));
          if (HasFatalFailure()) return;
        }
      }
  });
}

TEST_P(CpuKernels, DoNothingWithoutRowsOrColumns) {
  for (const Shape shape : {Shape::of(0, 64), Shape::of(64, 0), Shape::of(0, 0), Shape{5, 0, 8, 1}})
    check_all(workload(shape), nearly_normal_data(1));
}

// Each row of the matrix is one trap. Positions move with the row, so that heads, steps and tails all meet it.
TEST_P(CpuKernels, SurviveHostileValues) {
  const double largest = GetParam().dtype == Dtype::f16 ? 65504 : 1e15;  // its square is within fp32
  const double far = GetParam().dtype == Dtype::f16 ? -6e4 : -1e30;
  const bool norm = is_norm(GetParam().op);
  on_every_target([&] {
    for (std::int64_t cols : {1, 5, 31, 64, 100, 257, 1037}) {
      const std::int64_t traps = 12, rows = traps * 3;
      const auto data = [&](int tensor, std::int64_t r, std::int64_t c) -> double {
        const double plain = test_value(tensor, r, c, cols);
        if (tensor != test_input) return plain;
        const std::int64_t spot = r / traps == 0 ? 0 : r / traps == 1 ? cols / 2 : cols - 1;
        const std::int64_t slice = c * 7 / cols;  // the slices of s7, nearly
        switch (r % traps) {
          case 0:
            return c == spot ? nan : plain;
          case 1:
            return c == spot ? inf : plain;
          case 2:
            return c == spot ? -inf : plain;
          case 3:
            return -inf;
          case 4:
            return c == spot ? nan : -inf;
          case 5:
            return c == spot ? 5 : -inf;
          case 6:
            return slice == spot * 7 / cols ? -inf : plain;
          case 7:
            return norm ? -largest : far;  // constant
          case 8:
            return c == spot ? largest : plain;
          case 9:
            return 1e4 + plain;
          case 10:
            return 0;
          default:
            return c == spot ? (norm ? -largest : far) : largest;
        }
      };
      check_all(workload(Shape::of(rows, cols)), data, true);
      if (HasFatalFailure()) return;
    }
  });
}

TEST_P(CpuKernels, GiveTheSameBitsWhateverTheThreadsAndTheStores) {
  const Workload w = workload(Shape::of(37, 1000));
  Trial trial(w, nearly_normal_data(1000));
  std::map<std::string, std::string> bits_of;
  for (const Config& config : legal_and_degenerate_configs(w, trial.info(), false)) {
    Launcher launcher(w, config);
    trial.launch(launcher);
    Config same = config;  // threads, prefetch and the way of storing cannot matter
    for (auto& axis : same.axes)
      if (axis.letter == 'b' || axis.letter == 'p' || axis.letter == 'n') axis.value = 1;
    if (config.get('k', 0) == 1 && config.get('n', 0) != 0) continue;  // aligned starts group the sum otherwise
    const auto [known, is_new] = bits_of.emplace(same.name(), trial.written());
    EXPECT_TRUE(known->second == trial.written()) << config.name();
  }
}

// softmax adds up to 1, shifts do not matter, order is kept; a norm has the moments that it promises.
TEST_P(CpuKernels, HaveTheirProperties) {
  if (gives_row_results(GetParam().op)) return;  // nothing that adds up: the oracle's check says all
  const std::int64_t cols = 777;
  const Workload w = workload(Shape::of(5, cols));
  Workload plain = w;
  plain.options.weight = plain.options.bias = false;
  Trial trial(plain, nearly_normal_data(cols));
  const double ulp = GetParam().dtype == Dtype::f32 ? 0x1p-23 : GetParam().dtype == Dtype::f16 ? 0x1p-10 : 0x1p-7;
  for (const Config& config : legal_and_degenerate_configs(plain, trial.info(), true)) {
    SCOPED_TRACE(config.name());
    Launcher launcher(plain, config);
    trial.launch(launcher);
    for (std::int64_t r = 0; r < plain.shape.rows; ++r) {
      double sum = 0, squares = 0, exponentials = 0;
      for (std::int64_t c = 0; c < cols; ++c) {
        const double y = trial.output(r, c);
        sum += y;
        squares += y * y;
        exponentials += std::exp(y);
      }
      const auto n = static_cast<double>(cols);
      // Each output is off by half an ulp of itself and by fp32 arithmetic: 1 % of an ulp of 16 bits, some ulps of
      // fp32.
      if (plain.op == Operation::softmax) {
        EXPECT_NEAR(sum, 1, 40 * 0x1p-23 + 0.5 * ulp);
      }
      if (plain.op == Operation::log_softmax) {
        EXPECT_NEAR(exponentials, 1, 10 * (20 * 0x1p-23 + 0.5 * ulp));
      }
      if (plain.op == Operation::layernorm) {
        EXPECT_NEAR(sum / n, 0, 20 * 0x1p-23 + 0.5 * ulp);
      }
      if (is_norm(plain.op)) {
        EXPECT_NEAR(squares / n, 1, 1e-4 + ulp);
      }
    }
  }
}

TEST(CpuLauncher, RefusesWhatIsNotCompiledIn) {
  const Workload w = Workload::of(Operation::softmax, Dtype::f32, Shape::of(4, 64), Regime::warm);
  for (const char* name :
       {"threepass.b1.r1.v3.s1.k0.p0.n0", "registers.b1.r4.v16.s1.p0.n0", "registers.b1.r1.v1.s2.p0.n0"}) {
    try {
      Launcher launcher(w, split_config_name(name));
      FAIL() << name << " was accepted";
    } catch (const ConfigFailure& failure) {
      EXPECT_EQ(failure.outcome, Outcome::compile_error);
      EXPECT_NE(std::string(failure.what()).find(name), std::string::npos) << failure.what();
    }
  }
}

}  // namespace
}  // namespace rowtune::cpu
