#include "tuner/worker_device.hpp"

#include <stdexcept>

#include "kernels/cuda/cuda_device.hpp"
#include "kernels/errors.hpp"

namespace rowtune {

WorkerDevice::WorkerDevice(const WorkerMeasurer& worker) : info_(worker.device()) {
  for (Operation op : all_operations()) fingerprints_[op] = worker.source_fingerprint(op);
  try {
    if (info_.kind == DeviceKind::cuda) compiler_ = cuda::open_cuda_compiler(info_);
  } catch (const EnvironmentError&) {
    // no NVRTC here
  }
}

void WorkerDevice::compile_ahead(const std::vector<Job>& jobs, const std::atomic<bool>& stop,
                                 const std::function<void(std::size_t, std::size_t)>& progress) {
  if (compiler_)
    compiler_->compile_ahead(jobs, stop, progress);
  else if (progress && !jobs.empty())
    progress(jobs.size(), jobs.size());
}

std::unique_ptr<Bench> WorkerDevice::open(const Workload&) {
  throw std::logic_error("the buffers of a worker's device are opened by the worker");
}

void WorkerDevice::compute(const Workload&, const Config&, const HostTensors&) {
  throw std::logic_error("a worker's device computes in the worker");
}

}  // namespace rowtune
