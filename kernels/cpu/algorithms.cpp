// The search space of the cpu device, as data. See README.md for what the axes mean and what was measured.

#include "kernels/algorithms.hpp"

#include <algorithm>

namespace rowtune {
namespace {

using Op = Operation;
using Kind = Constraint::Kind;

/// 1, 2, 4 ... and the number of usable threads itself.
std::vector<int> thread_counts(const DeviceInfo& device) {
  std::vector<int> counts;
  for (int n = 1; n < device.units; n *= 2) counts.push_back(n);
  counts.push_back(std::max(1, device.units));
  return counts;
}

std::vector<int> powers_to(int limit) {
  std::vector<int> values;
  for (int n = 1; n <= limit; n *= 2) values.push_back(n);
  return values;
}

Axis threads(const DeviceInfo& device) { return {'b', "block_size", "threads of a launch", thread_counts(device)}; }
Axis rows_in_flight(std::vector<int> values) {
  return {'r', "rows_per_warp", "rows that a thread works on at once", std::move(values)};
}
Axis vectors(std::vector<int> values) { return {'v', "vector_width", "SIMD vectors per step", std::move(values)}; }
Axis splits(std::vector<int> values) {
  return {'s', "split_count", "slices of a row, shared among the threads", std::move(values)};
}

bool one_of(int value, std::initializer_list<int> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::int64_t elements(const Workload& w) { return w.shape.rows * w.shape.cols; }

const Constraint compiled{Kind::must, "compiled", "v is 1, 2, 4 or 8: those are compiled into the program",
                          [](const Workload&, const DeviceInfo&, const Config& c) {
                            return one_of(c.vector_width(), {1, 2, 4, 8});
                          }};
const Constraint thread_limit{
    Kind::must, "thread_limit", "b is at least 1 and at most 1024",
    [](const Workload&, const DeviceInfo&, const Config& c) { return c.block_size() >= 1 && c.block_size() <= 1024; }};
const Constraint row_by_row{Kind::must, "row_by_row", "r is 1: this algorithm takes one row at a time",
                            [](const Workload&, const DeviceInfo&, const Config& c) { return c.rows_per_warp() == 1; }};
const Constraint unshared{Kind::must, "unshared", "s is 1: this algorithm does not share a row",
                          [](const Workload&, const DeviceInfo&, const Config& c) { return c.split_count() == 1; }};
const Constraint split_limit{Kind::must, "split_limit", "s is at least 1 and at most 1024",
                             [](const Workload&, const DeviceInfo&, const Config& c) {
                               return c.split_count() >= 1 && c.split_count() <= 1024;
                             }};

const Constraint all_threads{Kind::worth, "all_threads",
                             "fewer threads than there are: only for small tensors, and once (v4) to show the scaling",
                             [](const Workload& w, const DeviceInfo& d, const Config& c) {
                               return c.block_size() == d.units || elements(w) <= (1 << 17) ||
                                      (c.vector_width() == 4 && c.split_count() == 1 && c.get('k', 0) == 0);
                             }};
const Constraint few_long_rows{
    Kind::worth, "few_long_rows",
    "a row is shared by as many threads as there are slices, and only where rows are long "
    "and fewer than two per thread, or odd in number",
    [](const Workload& w, const DeviceInfo&, const Config& c) {
      return c.split_count() == 1 ||
             (c.split_count() == c.block_size() && w.shape.cols >= 4096 && w.shape.rows < 4 * c.block_size());
    }};

std::vector<Algorithm> softmax_algorithms() {
  const std::vector<Op> both{Op::softmax, Op::log_softmax};
  const auto row_axes = [](const Workload&, const DeviceInfo& d) {
    return std::vector<Axis>{threads(d), rows_in_flight({1}), vectors({1, 2, 4, 8}), splits(thread_counts(d))};
  };
  const auto unsafe_axes = [](const Workload&, const DeviceInfo& d) {
    return std::vector<Axis>{threads(d), rows_in_flight({1}), vectors({4}), splits({1})};
  };
  const auto threepass_axes = [row_axes](const Workload& w, const DeviceInfo& d) {
    auto axes = row_axes(w, d);
    if (w.op == Op::softmax)
      axes.push_back(
          {'k', "kept", "0: exponentials are computed twice; 1: kept as fp32 until the sum is known", {0, 1}});
    return axes;
  };
  const Constraint kept{Kind::must, "kept", "k is 0 or 1", [](const Workload&, const DeviceInfo&, const Config& c) {
                          return one_of(c.get('k', 0), {0, 1});
                        }};
  return {
      {"unsafe",
       "softmax without the maximum: overflows; shown for comparison",
       false,
       both,
       unsafe_axes,
       {compiled, thread_limit, row_by_row, unshared, all_threads}},
      {"threepass",
       "maximum, sum of exponentials, result: three passes over a row that stays in cache",
       true,
       both,
       threepass_axes,
       {compiled, thread_limit, row_by_row, split_limit, kept, all_threads, few_long_rows}},
      {"online",
       "maximum and sum in one read, result from a second",
       true,
       both,
       row_axes,
       {compiled, thread_limit, row_by_row, split_limit, all_threads, few_long_rows}},
  };
}

std::vector<Algorithm> norm_algorithms() {
  const auto row_axes = [](const Workload&, const DeviceInfo& d) {
    return std::vector<Axis>{threads(d), rows_in_flight({1}), vectors({1, 2, 4, 8}), splits(thread_counts(d))};
  };
  const auto naive_axes = [](const Workload&, const DeviceInfo& d) {
    return std::vector<Axis>{threads(d), rows_in_flight({1}), vectors({4}), splits({1})};
  };
  const std::vector<Constraint> rules{compiled, thread_limit, row_by_row, split_limit, all_threads, few_long_rows};
  const std::vector<Constraint> naive_rules{compiled, thread_limit, row_by_row, unshared, all_threads};
  return {
      {"onepass",
       "layernorm from the mean of squares: cancels; shown for comparison",
       false,
       {Op::layernorm},
       naive_axes,
       naive_rules},
      {"twopass",
       "mean, then squared distances, over a row that stays in cache",
       true,
       {Op::layernorm},
       row_axes,
       rules},
      {"welford", "one read: blocks of v vectors merged by Chan's rule", true, {Op::layernorm}, row_axes, rules},
      {"unfused",
       "the sum for the whole tensor first, then the norm: what fusing saves",
       true,
       {Op::fused_add_rmsnorm},
       naive_axes,
       naive_rules},
      {"squares",
       "mean of squares, then the result, over a row that stays in cache",
       true,
       {Op::rmsnorm, Op::fused_add_rmsnorm},
       row_axes,
       rules},
  };
}

}  // namespace

std::vector<Algorithm> cpu_algorithms() {
  std::vector<Algorithm> all{
      {"copy",
       "every element from input to output",
       true,
       {Op::copy},
       [](const Workload&, const DeviceInfo& d) {
         return std::vector<Axis>{threads(d), rows_in_flight({1}), vectors(powers_to(8)), splits({1})};
       },
       {compiled, thread_limit, row_by_row, unshared}}};
  for (auto& algorithm : softmax_algorithms()) all.push_back(std::move(algorithm));
  for (auto& algorithm : norm_algorithms()) all.push_back(std::move(algorithm));
  return all;
}

Config cpu_base_config(const Workload& w, const DeviceInfo& device) {
  const std::vector<AxisValue> axes{{'b', std::max(1, device.units)}, {'r', 1}, {'v', 4}, {'s', 1}};
  switch (w.op) {
    case Op::softmax: {
      Config base{"threepass", axes};
      base.axes.push_back({'k', w.dtype == Dtype::f32 ? 1 : 0});
      return base;
    }
    case Op::log_softmax:
      return {"threepass", axes};
    case Op::layernorm:
      return {"twopass", axes};
    case Op::rmsnorm:
    case Op::fused_add_rmsnorm:
      return {"squares", axes};
    case Op::copy:
      break;
  }
  return {"copy", axes};
}

}  // namespace rowtune
