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

std::unique_ptr<Bench> make_bench(const Workload& workload, const DeviceInfo& device, const CompileFunction& compile);

}  // namespace rowtune::cuda
