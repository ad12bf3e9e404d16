#include "kernels/cuda/axes.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/cuda/plan.hpp"

namespace rowtune {

using cuda::row_layout;
using cuda::widest_vector;

bool has_exponentials(Operation op) {
  return op == Operation::softmax || op == Operation::log_softmax || op == Operation::argmax_logsumexp;
}

Axis block_sizes(std::vector<int> values) { return {'b', "block_size", "threads of a block", std::move(values)}; }
Axis fitting_block_sizes(const Workload& w, std::vector<int> values) {
  const std::int64_t vectors = row_layout(w, widest_vector(w.dtype)).vectors;
  const auto idle = [&](std::int64_t block) {
    const std::int64_t each = (vectors + block - 1) / block;
    return 1.0 - static_cast<double>(vectors) / static_cast<double>(each * block);
  };
  const std::vector<int> powers = values;
  for (int each = 1; each <= 4; ++each) {
    const std::int64_t block = (vectors + each * 32 - 1) / (each * 32) * 32;
    if (block < 64 || block > 1024) continue;
    double least = 1;
    for (const int b : powers)
      if (const std::int64_t mine = (vectors + b - 1) / b; mine == each || mine == each + 1)
        least = std::min(least, idle(b));
    if (idle(block) + 0.1 <= least && std::find(values.begin(), values.end(), block) == values.end())
      values.push_back(static_cast<int>(block));
  }
  return block_sizes(std::move(values));
}
Axis rows_per_warp(std::vector<int> values) {
  return {'r', "rows_per_warp", "rows a warp works on at once", std::move(values)};
}
Axis splits(std::vector<int> values) { return {'s', "split_count", "blocks that share a row", std::move(values)}; }
Axis vector_widths(const Workload& w) {
  std::vector<int> widths;
  for (int v = widest_vector(w.dtype); v >= 1; v /= 2) widths.push_back(v);
  return {'v', "vector_width", "elements of one access", widths};
}
Axis packing(const Workload& w) {
  return {'p', "packed", "1: the row stays in its dtype in registers and is unpacked at each use; 0: as floats",
          w.dtype == Dtype::f32 ? std::vector<int>{0} : std::vector<int>{1, 0}};
}
Axis launch_bounds(std::vector<int> values) {
  return {'m', "min_blocks", "blocks per multiprocessor that the compiler must leave registers for; 0: no bound",
          std::move(values)};
}
Axis hints() { return {'h', "hint", "cache hint: 1 loads and stores marked as touched once", {1, 0}}; }
Axis rereading_hints() {
  return {'h',
          "hint",
          "cache hint: 1 loads and stores marked as touched once; 2 all but the first look at a row that is read again",
          {2, 1, 0}};
}
Axis batches(std::vector<int> values) {
  return {'u', "batch", "vectors that a thread loads before it uses the first", std::move(values)};
}
Axis asynchronous() { return {'a', "async", "1: filled by asynchronous copies", {0, 1}}; }
Axis persistence(std::vector<int> values) {
  return {'g', "resident_blocks", "persistent blocks on each multiprocessor; 0: one block per row", std::move(values)};
}
Axis ahead() { return {'l', "ahead", "1: persistent blocks load their next row while they reduce one", {0, 1}}; }

void add_weights(const Workload& w, std::vector<Axis>& axes, std::vector<int> values) {
  if (!is_norm(w.op)) return;
  axes.push_back({'e', "early",
                  "weights are loaded before the row is reduced, and wait in registers (1; ragged lanes: in shared "
                  "memory) or in shared memory (2)",
                  std::move(values)});
}

void add_arithmetic(const Workload& w, std::vector<Axis>& axes) {
  if (has_exponentials(w.op))
    axes.push_back({'x', "exp", "1: special-function unit, subnormals flushed; 0: expf", {1, 0}});
  if (w.op == Operation::layernorm)
    axes.push_back({'w', "variance", "1: one pass, 2: two passes, 3: Welford with Chan's merge", {3, 2, 1}});
}

}  // namespace rowtune
