#include "kernels/cpu/kernel.hpp"

namespace rowtune::cpu {

RowKernel find_kernel(const Workload& workload, const Config& config) {
  switch (workload.op) {
    case Operation::copy:
      return find_copy(workload.dtype, config);
    case Operation::softmax:
      return find_softmax(workload.dtype, false, config);
    case Operation::log_softmax:
      return find_softmax(workload.dtype, true, config);
    default:
      return find_norm(workload, config);
  }
}

}  // namespace rowtune::cpu
