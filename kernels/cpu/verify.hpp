#pragma once
// The check of a launch: every element against the fp64 oracle, every guard, and the inputs left as they were.

#include <vector>

#include "kernels/config.hpp"
#include "kernels/cpu/slot.hpp"
#include "kernels/device.hpp"

namespace rowtune::cpu {

/// What the outputs of one slot must be, as doubles; computed once and used for every config of the workload.
class Expectation {
 public:
  /// `slot` holds the inputs as the kernels will see them.
  Expectation(const Workload& workload, const Slot& slot, int threads);

  /// `slot` after a launch of `config`; `inputs` holds untouched inputs, against which those of `slot` are compared
  /// unless the operation works in place.
  Verification check(Slot& slot, const Slot& inputs, const Config& config) const;

 private:
  struct Row;
  Workload workload_;
  int threads_;
  std::vector<double> output_, new_residual_, spread_, weight_;
};

/// The longest chain of fp32 additions that a sum of the config goes through.
double summation_depth(const Workload& workload, const Config& config);

}  // namespace rowtune::cpu
