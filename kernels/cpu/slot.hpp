#pragma once
// One complete set of a workload's tensors. A bench rotates through several.

#include <optional>

#include "kernels/cpu/buffers.hpp"
#include "kernels/cpu/kernel.hpp"

namespace rowtune::cpu {

struct Slot {
  GuardedMatrix input;
  std::optional<GuardedMatrix> residual, output, new_residual, weight, bias;

  explicit Slot(const Workload& workload);  ///< guards set, elements unset
  Tensors tensors(const Workload& workload);
  /// The tensors that a launch writes: in place, those are inputs too.
  GuardedMatrix& written() { return output ? *output : input; }
  GuardedMatrix* written_residual() { return new_residual ? &*new_residual : residual ? &*residual : nullptr; }
};

std::int64_t slot_bytes(const Workload& workload);  ///< allocated for one slot

/// Fills the inputs and weights with rowtune/testdata.cuh, rounded to the dtype, on `threads` threads.
void fill_with_test_data(Slot& slot, const Workload& workload, int threads);
void copy_inputs(Slot& to, const Slot& from);  ///< weights included

}  // namespace rowtune::cpu
