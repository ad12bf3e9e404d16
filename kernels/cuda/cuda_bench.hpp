#pragma once
// The buffers of one workload on a GPU, and its configs loaded over them.

#include <functional>
#include <memory>

#include "kernels/cuda/compiler.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/device.hpp"

namespace rowtune::cuda {

/// From source to cubin; the device keeps what it compiled.
using CompileFunction = std::function<Binary(const std::string& source)>;

/// Device::compute.
void compute_once(const Workload& workload, const Config& config, const HostTensors& tensors, const DeviceInfo& device,
                  const CompileFunction& compile);

std::unique_ptr<Bench> make_bench(const Workload& workload, const DeviceInfo& device, const CompileFunction& compile);

}  // namespace rowtune::cuda
