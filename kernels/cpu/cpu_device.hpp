#pragma once
// The cpu device: kernels compiled with the program, SIMD by Highway's run-time dispatch, threads by OpenMP.

#include <memory>

#include "kernels/device.hpp"

namespace rowtune {

DeviceInfo cpu_device_info();
std::unique_ptr<Device> open_cpu_device();

}  // namespace rowtune
