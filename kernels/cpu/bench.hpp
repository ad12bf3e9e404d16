#pragma once
// The buffers of a workload on the cpu, and the kernels that run on them.

#include <memory>

#include "kernels/device.hpp"

namespace rowtune::cpu {

/// `info` must outlive the bench.
std::unique_ptr<Bench> open_bench(const Workload& workload, const DeviceInfo& info);

/// Sets of tensors that the workload's regime rotates through.
std::int64_t slots_for(const Workload& workload, const DeviceInfo& info);
/// Enough launches for a millisecond at 40 GB/s and a microsecond of overhead: the same for every config.
std::int64_t launches_for(const Workload& workload);

/// Device::compute.
void compute_once(const Workload& workload, const Config& config, const HostTensors& tensors, const DeviceInfo& info);

}  // namespace rowtune::cpu
