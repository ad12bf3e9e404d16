// What must hold of an operation whatever the values are: shift and scale invariance, rows that sum to one, columns in
// another order, nothing to do. Each on every kernel of the sample, at the shape it was planned for.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "kernels/oracle.hpp"
#include "kernels/tests/spec_problem.hpp"

namespace rowtune::spec {
namespace {

using emulator::SampledCase;

/// Runs on every case of the operations; `body` returns what is wrong.
template <class Body>
void on_every_kernel(std::set<Operation> ops, const Body& body) {
  int ran = 0, failures = 0;
  for (const SampledCase& c : runner().cases()) {
    if (!ops.contains(c.workload.op)) continue;
    ++ran;
    std::string wrong;
    try {
      wrong = body(c);
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    EXPECT_EQ(wrong, "") << to_string(c.workload) << ", " << c.config.name();
    if (!wrong.empty() && ++failures == 5) GTEST_FAIL() << "and perhaps more";
  }
  EXPECT_GT(ran, 0);
}

double at(const Call& call, const Tensor& t, std::int64_t row, std::int64_t col) {
  const std::byte* base = call.buffers[static_cast<std::size_t>(t.buffer)].data() + t.first;
  return load_element(call.workload.dtype, base, row * t.stride + col);
}
void set(Call& call, const Tensor& t, std::int64_t row, std::int64_t col, double value) {
  std::byte* base = call.buffers[static_cast<std::size_t>(t.buffer)].data() + t.first;
  store_element(call.workload.dtype, base, row * t.stride + col, value);
}
template <class Change>
void change_input(Call& call, const Change& change) {
  for (std::int64_t r = 0; r < call.input.rows; ++r)
    for (std::int64_t c = 0; c < call.input.cols; ++c) set(call, call.input, r, c, change(at(call, call.input, r, c)));
}

Call run_of(const Call& call, std::uint64_t order) {
  Call after = call;
  runner().run(after, order);
  return after;
}

std::string first_difference(const std::vector<double>& a, const std::vector<double>& b, std::int64_t cols) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i]))
      return fmt::format("[{}, {}] is {} and {}", static_cast<std::int64_t>(i) / cols,
                         static_cast<std::int64_t>(i) % cols, a[i], b[i]);
  return {};
}

/// Small integers stay exact when 64 is added: x - max is the same number, so the bits are.
TEST(Properties, SoftmaxIsTheSameForShiftedRows) {
  on_every_kernel({Operation::softmax, Operation::log_softmax}, [](const SampledCase& c) {
    if (c.config.algorithm == "unsafe") return std::string();
    const Call call = make_call(c.workload, c.config, {Values::small_integers});
    Call shifted = call;
    change_input(shifted, [](double x) { return x + 64; });
    return first_difference(output_of(run_of(call, 1)), output_of(run_of(shifted, 2)), c.workload.shape.cols);
  });
}

/// Each output may be off by its tolerance, hence the sum by the sum of them.
TEST(Properties, SoftmaxRowsSumToOne) {
  on_every_kernel({Operation::softmax}, [](const SampledCase& c) {
    const Call call = make_call(c.workload, c.config, {Values::normal, Values::small_integers, Values::constant});
    const auto y = output_of(run_of(call, 3));
    const auto tolerance = tolerances_of(call);
    const std::int64_t cols = c.workload.shape.cols;
    for (std::int64_t r = 0; r < c.workload.shape.rows; ++r) {
      const double sum = std::accumulate(y.begin() + r * cols, y.begin() + (r + 1) * cols, 0.0);
      const double bound = std::accumulate(tolerance.begin() + r * cols, tolerance.begin() + (r + 1) * cols, 0.0);
      if (!(std::fabs(sum - 1) <= bound)) return fmt::format("row {} sums to {}, bound {}", r, sum, bound);
      if (!std::all_of(y.begin() + r * cols, y.begin() + (r + 1) * cols, [](double v) { return v >= 0 && v <= 1; }))
        return fmt::format("row {} has a value outside 0 .. 1", r);
    }
    return std::string();
  });
}

/// Two results, each within its tolerance of the same number.
TEST(Properties, ReversedColumnsGiveReversedResults) {
  on_every_kernel({Operation::softmax, Operation::log_softmax, Operation::rmsnorm, Operation::layernorm},
                  [](const SampledCase& c) {
                    Workload w = c.workload;
                    if (w.options.weight || w.options.bias) return std::string();
                    const Call call = make_call(w, c.config, {Values::normal, Values::small_integers});
                    Call reversed = call;
                    const std::int64_t cols = w.shape.cols;
                    for (std::int64_t r = 0; r < w.shape.rows; ++r)
                      for (std::int64_t i = 0; i < cols; ++i)
                        set(reversed, reversed.input, r, i, at(call, call.input, r, cols - 1 - i));
                    const auto y = output_of(run_of(call, 4)), z = output_of(run_of(reversed, 5));
                    const auto tolerance = tolerances_of(call);
                    for (std::int64_t r = 0; r < w.shape.rows; ++r)
                      for (std::int64_t i = 0; i < cols; ++i) {
                        const auto a = static_cast<std::size_t>(r * cols + i);
                        const auto b = static_cast<std::size_t>(r * cols + cols - 1 - i);
                        if (!(std::fabs(y[a] - z[b]) <= 2 * tolerance[a]))
                          return fmt::format("[{}, {}] is {} and {}", r, i, y[a], z[b]);
                      }
                    return std::string();
                  });
}

/// Without eps, a power of two in the input changes no bit of the output: nothing over- or underflows here.
TEST(Properties, NormsAreTheSameForScaledRows) {
  on_every_kernel({Operation::layernorm, Operation::rmsnorm}, [](const SampledCase& c) {
    Workload w = c.workload;
    w.options.eps = 0;
    if (w.shape.cols < 7) return std::string();  // a constant row divides by zero
    const Call call = make_call(w, c.config, {Values::small_integers});
    Call scaled = call;
    change_input(scaled, [](double x) { return x * 8; });
    return first_difference(output_of(run_of(call, 6)), output_of(run_of(scaled, 7)), w.shape.cols);
  });
}

/// The weight offset is added in fp32: weight 0 and offset 1 is the norm without weight.
TEST(Properties, WeightOffsetIsAddedToEachWeight) {
  on_every_kernel({Operation::layernorm, Operation::rmsnorm, Operation::fused_add_rmsnorm}, [](const SampledCase& c) {
    if (!c.workload.options.weight) return std::string();
    Call call = make_call(c.workload, c.config, {Values::normal});
    call.weight_offset = 1;
    return run_and_check(call, 8, false);
  });
}

/// No rows or no columns: success, nothing touched. A kernel of the sample takes part where its source serves such a
/// shape.
TEST(Properties, NothingToDoTouchesNothing) {
  int ran = 0;
  std::set<std::string> algorithms;
  for (const SampledCase& c : runner().cases()) {
    for (const bool no_rows : {true, false}) {
      for (const std::int64_t cols : {c.workload.shape.cols, c.workload.shape.cols - c.workload.shape.cols % 8}) {
        Workload w = c.workload;
        w.shape.rows = no_rows ? 0 : 2;
        w.shape.cols = no_rows ? cols : 0;
        w.shape.ld = std::max(w.shape.ld, w.shape.cols);
        if (!is_legal(w, c.config) || !runner().offers(w, c.config)) continue;
        EXPECT_EQ(run_and_check(make_call(w, c.config, {Values::normal}), 9, false), "");
        ++ran;
        algorithms.insert(c.config.algorithm);
        break;
      }
    }
  }
  EXPECT_GE(algorithms.size(), 11u) << ran;
}

}  // namespace
}  // namespace rowtune::spec
