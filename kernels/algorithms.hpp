#pragma once
// The tables behind kernels/space.hpp: one list of algorithms for each device kind, and the base config.

#include "kernels/space.hpp"

namespace rowtune {

std::vector<Algorithm> cpu_algorithms();   ///< kernels/cpu/algorithms.cpp
std::vector<Algorithm> cuda_algorithms();  ///< kernels/cuda/algorithms.cpp; plain data, needs no toolkit

Config cpu_base_config(const Workload& workload, const DeviceInfo& device);
Config cuda_base_config(const Workload& workload, const DeviceInfo& device);
inline Config base_config(const Workload& workload, const DeviceInfo& device) {
  return device.kind == DeviceKind::cpu ? cpu_base_config(workload, device) : cuda_base_config(workload, device);
}

}  // namespace rowtune
