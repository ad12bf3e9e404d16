#include "kernels/cpu/kernel.hpp"

namespace rowtune::cpu {

RowKernel find_kernel(const Workload& workload, const Config& config) {
  const bool is_softmax = workload.op == Operation::softmax || workload.op == Operation::log_softmax;
  const bool log = workload.op == Operation::log_softmax;
  if (config.algorithm == "registers") {
    if (workload.shape.cols > std::int64_t{config.vector_width()} * simd_lanes()) return {};
    return is_softmax ? find_short_softmax(workload.dtype, log, config) : find_short_norm(workload, config);
  }
  if (workload.op == Operation::argmax_logsumexp) return find_argmax(workload.dtype, config);
  if (workload.op == Operation::copy) return find_copy(workload.dtype, config);
  return is_softmax ? find_softmax(workload.dtype, log, config) : find_norm(workload, config);
}

}  // namespace rowtune::cpu
