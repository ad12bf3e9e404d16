#pragma once
// The axes that CUDA algorithms choose from: their letters, and the words that people see.

#include <vector>

#include "kernels/algorithms.hpp"
#include "kernels/words.hpp"

namespace rowtune {

bool has_exponentials(Operation op);

Axis block_sizes(std::vector<int> values);
/// `values`, powers of two, and sizes that hold the row in 1 to 4 vectors a thread where those would leave a tenth or
/// more of the threads without work.
Axis fitting_block_sizes(const Workload& workload, std::vector<int> values);
Axis rows_per_warp(std::vector<int> values);
Axis splits(std::vector<int> values);
Axis vector_widths(const Workload& workload);
Axis packing(const Workload& workload);
Axis launch_bounds(std::vector<int> values);
Axis hints();
Axis rereading_hints();
Axis batches(std::vector<int> values);
Axis asynchronous();
Axis persistence(std::vector<int> values);
Axis ahead();

/// The norms: where their weights wait.
void add_weights(const Workload& workload, std::vector<Axis>& axes, std::vector<int> values = {0, 1});
/// Exponential of the softmaxes, variance of layernorm; nothing for the rms norms.
void add_arithmetic(const Workload& workload, std::vector<Axis>& axes);

}  // namespace rowtune
