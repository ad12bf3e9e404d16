#pragma once
// The CUDA devices: NVRTC for the GPU's own architecture, launched through the runtime. A program built with CUDA
// starts on a machine without a driver; a program built without CUDA says so here.

#include <memory>
#include <vector>

#include "kernels/device.hpp"

namespace rowtune::cuda {

/// One entry per GPU; where there is none, one entry `cuda:0` that says why. Never throws.
std::vector<DeviceInfo> list_cuda_devices();

/// Throws EnvironmentError when it cannot be used.
std::unique_ptr<Device> open_cuda_device(int index);

/// Compiles for a device that need not be here. Throws EnvironmentError when there is no NVRTC.
std::unique_ptr<Device> open_cuda_compiler(const DeviceInfo& device);

/// Whether compiled kernels go to a cache on disk, where other processes find them.
bool has_compile_cache();

}  // namespace rowtune::cuda
