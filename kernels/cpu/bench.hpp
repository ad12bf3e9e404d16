#pragma once
// The buffers of a workload on the cpu, and the kernels that run on them.

#include <memory>

#include "kernels/device.hpp"

namespace rowtune::cpu {

/// `info` must outlive the bench.
std::unique_ptr<Bench> open_bench(const Workload& workload, const DeviceInfo& info);

/// Device::compute.
void compute_once(const Workload& workload, const Config& config, const HostTensors& tensors, const DeviceInfo& info);

}  // namespace rowtune::cpu
