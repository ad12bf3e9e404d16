// The specification of the kernels, case by case: every operation, dtype and algorithm over ragged shapes, offsets,
// strides, in place, and hostile values. The same source runs on the emulator and on a GPU.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "kernels/tests/spec_problem.hpp"

namespace rowtune::spec {
namespace {

using emulator::SampledCase;
using Group = std::tuple<Operation, Dtype, std::string>;

std::vector<Group> groups() {
  std::map<Group, int> seen;
  for (const SampledCase& c : runner().cases()) ++seen[{c.workload.op, c.workload.dtype, c.config.algorithm}];
  std::vector<Group> all;
  for (const auto& [group, count] : seen) all.push_back(group);
  return all;
}

/// Shapes that the very kernel of `c` serves: same source, other rows.
std::vector<Workload> workloads_of(const SampledCase& c, std::size_t most) {
  const int v = c.config.vector_width();
  const std::int64_t rows_per_block =
      c.config.algorithm == "lanes" ? c.config.block_size() / 32 * c.config.rows_per_warp() : 1;
  std::vector<std::int64_t> rows{1, 2, 5, 7};
  for (std::int64_t r : {rows_per_block - 1, rows_per_block, rows_per_block + 1})
    if (r > 7 && r <= 80) rows.push_back(r);
  std::vector<std::int64_t> cols = emulator::hard_cols();
  cols.push_back(c.workload.shape.cols);
  const std::string source = cuda::plan_kernel(c.workload, c.config).source;

  std::vector<Workload> all;
  for (std::int64_t n : cols) {
    for (std::int64_t extra : {0, 1, v, 3 * v + 1, 8 * v}) {
      for (std::int64_t off : {0, 1, v, 2 * v - 1}) {
        Workload w = c.workload;
        w.shape = {rows[all.size() % rows.size()], n, n + extra, off};
        if (w.op != Operation::fused_add_rmsnorm || all.size() % 3 == 0)
          w.options.in_place = all.size() % 2 == 0 && !gives_row_results(w.op);
        if (!is_legal(w, c.config)) continue;
        if (cuda::plan_kernel(w, c.config).source == source) all.push_back(w);
      }
    }
  }
  std::mt19937 random(20250101);
  std::shuffle(all.begin(), all.end(), random);
  if (all.size() > most) all.resize(most);
  all.insert(all.begin(), c.workload);
  return all;
}

static_assert(values_count % 7 != 0);
std::vector<Values> values_for(const Workload& w, const Config& config, std::size_t first) {
  std::vector<Values> rows;
  for (int i = 0; i < values_count; ++i) {
    // 7 and the count have no common divisor: every kind once, in another order than declared.
    const auto values = static_cast<Values>((static_cast<std::size_t>(i) * 7 + first) % values_count);
    if (promised(w, config, values)) rows.push_back(values);
  }
  return rows;
}

class Kernels : public testing::TestWithParam<Group> {};

TEST_P(Kernels, AreRightOnRaggedShapesAndHostileValues) {
  std::size_t ran = 0;
  int failures = 0;
  for (const SampledCase& c : runner().cases()) {
    if (Group{c.workload.op, c.workload.dtype, c.config.algorithm} != GetParam()) continue;
    // Kernels of many threads are slow to emulate: fewer shapes.
    const int threads = c.config.block_size() * c.config.split_count();
    for (const Workload& w : workloads_of(c, static_cast<std::size_t>(std::clamp(24 * 512 / threads, 5, 24)))) {
      const Call call = make_call(w, c.config, values_for(w, c.config, ran * 7));
      const std::string wrong = run_and_check(call, 1000 + ran, ran % 2 == 0);
      EXPECT_EQ(wrong, "");
      ++ran;
      if (!wrong.empty() && ++failures == 5) GTEST_FAIL() << "and perhaps more";
    }
  }
  RecordProperty("cases", static_cast<int>(ran));
}

std::string name_of(const testing::TestParamInfo<Group>& info) {
  const auto& [op, dtype, algorithm] = info.param;
  return fmt::format("{}_{}_{}", to_string(op), to_string(dtype), algorithm);
}
INSTANTIATE_TEST_SUITE_P(Spec, Kernels, testing::ValuesIn(groups()), name_of);

}  // namespace
}  // namespace rowtune::spec
