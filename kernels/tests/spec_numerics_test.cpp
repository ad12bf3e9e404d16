// The public cases with known answers (cases/numerics.json) against the kernels themselves: each case on every kernel
// of the sample, of its operation and dtype, that serves such a row. Right by the rule of tolerance.cuh, against the
// answer that the case states.
//
// A variance is no output of a kernel: such a case is a layernorm, whose answer follows from mean and variance. The
// log-sum-exp of a softmax case gives the answer of a log_softmax. Cases in f64 are run in f32 where f32 holds their
// input; the others are no business of a kernel.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/oracle.hpp"
#include "kernels/space.hpp"
#include "kernels/tests/spec_problem.hpp"
#include "rowtune/tolerance.cuh"

namespace rowtune::spec {

extern const char* const numerics_cases_json;

namespace {

using emulator::SampledCase;

double number(const nlohmann::json& text) { return std::strtod(text.get<std::string>().c_str(), nullptr); }

std::vector<double> expand(const nlohmann::json& list) {
  std::vector<double> values;
  for (const auto& pair : list) values.insert(values.end(), pair[1].get<std::size_t>(), number(pair[0]));
  return values;
}

void repeat_until(std::vector<double>& values, std::size_t total) {
  const std::size_t once = values.size();
  while (values.size() < total) values.push_back(values[values.size() - once]);
}

double rounded(Dtype dtype, double value) {
  std::uint32_t element = 0;
  store_element(dtype, &element, 0, value);
  return load_element(dtype, &element, 0);
}

/// A case as a row of one operation: what goes in, what must come out.
struct Row {
  std::string id;
  Operation op = Operation::softmax;
  Dtype dtype = Dtype::f32;
  double eps = 0;
  std::vector<double> input, output;
};

void add_row(std::vector<Row>& rows, Row row, Operation op, const std::function<double(double)>& answer) {
  row.op = op;
  row.output.clear();
  for (const double x : row.input) row.output.push_back(answer(x));
  rows.push_back(std::move(row));
}

/// The rows that a case stands for; none where f32 cannot hold its input.
std::vector<Row> rows_of(const nlohmann::json& known) {
  Row row;
  row.id = known["id"];
  const std::string op = known["op"], dtype = known["dtype"];
  row.dtype = parse_dtype(dtype == "f64" ? "f32" : dtype);
  row.input = expand(known["input"]);
  repeat_until(row.input, row.input.size() * known.value("repeat", std::size_t{1}));
  for (double& x : row.input) {
    const double kept = rounded(row.dtype, x);
    if (dtype == "f64" && !(kept == x)) return {};
    x = kept;
  }
  const auto& expect = known["expect"];
  std::vector<Row> rows;
  if (op == "variance") {
    // 1e-5 is the epsilon that layernorms use; with none, a constant row has no answer.
    row.eps = 1e-5;
    const double mean = number(expect["mean"]), rms = std::sqrt(number(expect["var_pop"]) + row.eps);
    add_row(rows, row, Operation::layernorm, [&](double x) { return (x - mean) / rms; });
    return rows;
  }
  row.op = parse_operation(op);
  if (known.contains("eps")) row.eps = number(known["eps"]);
  row.output = expand(expect["output"]);
  repeat_until(row.output, row.input.size());
  rows.push_back(row);
  if (row.op == Operation::rmsnorm) {  // and with a residual of zeros
    rows.push_back(row);
    rows.back().op = Operation::fused_add_rmsnorm;
  }
  if (row.op == Operation::softmax) {
    const double lse = number(expect["logsumexp"]);
    add_row(rows, row, Operation::log_softmax, [&](double x) { return x - lse; });
  }
  return rows;
}

void fill_tensor(Call& call, const Tensor& t, double value) {
  if (!t.there()) return;
  std::byte* base = call.buffers[static_cast<std::size_t>(t.buffer)].data() + t.first;
  for (std::int64_t r = 0; r < t.rows; ++r)
    for (std::int64_t c = 0; c < t.cols; ++c) store_element(call.workload.dtype, base, r * t.stride + c, value);
}

/// What is wrong with the outputs, each of whose rows is `row.output`.
std::string compare(const Row& row, const Call& call, const std::vector<double>& got) {
  const Workload& w = call.workload;
  const double depth = cuda::plan_kernel(w, call.config).depth;
  const std::vector<double> residual(w.op == Operation::fused_add_rmsnorm ? row.input.size() : 0, 0.0);
  const double spread = reference_row(w, row.input, residual, nullptr, nullptr).spread;
  for (std::size_t i = 0; i < got.size(); ++i) {
    double error = 0;
    const double want = row.output[i % row.output.size()];
    if (!check_element(w, got[i], want, spread, 1, depth, &error))
      return fmt::format("output {} is {}, the case says {} ({:.3g} ulp off; depth {})", i, got[i], want, error, depth);
  }
  return {};
}

/// Runs the row on at most `each` kernels of every algorithm that serve it; the algorithms that did.
std::set<std::string> run_on_kernels(const Row& row, int each) {
  std::map<std::string, int> ran;
  const auto cols = static_cast<std::int64_t>(row.input.size());
  for (const SampledCase& c : runner().cases()) {
    if (c.workload.op != row.op || c.workload.dtype != row.dtype || !is_eligible(DeviceKind::cuda, c.config)) continue;
    if (ran[c.config.algorithm] >= each) continue;
    Workload w = c.workload;
    w.options.eps = row.eps;
    w.shape = Shape::of(cols > 20000 ? 1 : 3, cols);
    if (!is_legal(w, c.config) || !runner().offers(w, c.config)) continue;
    Call call = make_call(w, c.config, [&](auto, auto col) { return row.input[static_cast<std::size_t>(col)]; });
    fill_tensor(call, call.weight, 1);
    fill_tensor(call, call.bias, 0);
    fill_tensor(call, call.residual, 0);
    ++ran[c.config.algorithm];
    const std::string about = fmt::format("{} on {}, {}", row.id, to_string(w), c.config.name());
    try {
      Call after = call;
      runner().run(after, 31);
      EXPECT_EQ(compare(row, call, output_of(after)), "") << about;
    } catch (const std::exception& e) {
      ADD_FAILURE() << about << ": " << e.what();
    }
  }
  std::set<std::string> algorithms;
  for (const auto& [algorithm, count] : ran)
    if (count > 0) algorithms.insert(algorithm);
  return algorithms;
}

TEST(Numerics, KernelsGiveTheAnswersOfThePublicCases) {
  int cases = 0, rows = 0;
  std::vector<std::string> without;
  for (const auto& known : nlohmann::json::parse(numerics_cases_json)) {
    ++cases;
    const auto all = rows_of(known);
    if (all.empty()) without.push_back(known["id"]);
    for (const Row& row : all) {
      const bool is_long = row.input.size() > 20000;  // slow to emulate, and few kernels take any length
      const auto algorithms = run_on_kernels(row, is_long ? 1 : 3);
      EXPECT_GE(algorithms.size(), is_long ? 1u : 2u)
          << row.id << " as " << to_string(row.op) << " " << to_string(row.dtype) << ": "
          << fmt::format("{}", fmt::join(algorithms, ", "));
      ++rows;
    }
  }
  fmt::print("{} public cases as {} rows; for f64 alone: {}\n", cases, rows, fmt::join(without, ", "));
  EXPECT_EQ(cases, 30);
  EXPECT_EQ(without.size(), 6u);
}

}  // namespace
}  // namespace rowtune::spec
