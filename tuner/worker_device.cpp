#include "tuner/worker_device.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_device.hpp"
#include "kernels/errors.hpp"

namespace rowtune {

WorkerDevice::WorkerDevice(const WorkerMeasurer& worker) : info_(worker.device()) {
  for (Operation op : all_operations()) fingerprints_[op] = worker.source_fingerprint(op);
  try {
    if (info_.kind != DeviceKind::cuda) return;
    compiler_ = cuda::open_cuda_compiler(info_);
    if (cuda::has_compile_cache())
      processes_.emplace(
          std::vector<std::string>{worker.program(), "worker", "--compile", std::to_string(info_.architecture)});
  } catch (const EnvironmentError&) {
    // no NVRTC here
  }
}

std::string WorkerDevice::source(const Workload& workload, const Config& config) const {
  return compiler_ ? compiler_->source(workload, config) : std::string();
}

void WorkerDevice::compile(const std::string& source) {
  if (!processes_ || !processes_->compile(source)) compiler_->compile(source);
}

std::unique_ptr<Bench> WorkerDevice::open(const Workload&) {
  throw std::logic_error("the buffers of a worker's device are opened by the worker");
}

void WorkerDevice::compute(const Workload&, const Config&, const HostTensors&) {
  throw std::logic_error("a worker's device computes in the worker");
}

}  // namespace rowtune
