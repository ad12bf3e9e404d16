#pragma once
// Limits of GPUs that are not here: so that spaces can be shown, tested and compiled for them without one.

#include <optional>
#include <string>

#include "kernels/device.hpp"

namespace rowtune::cuda {

/// 75 (T4), 80 (A100), 90 (H200), 100 (B200). Limits from NVIDIA's CUDA programming guide, table of compute
/// capabilities; multiprocessors, caches and bandwidths from the data sheets. Throws UsageError for others.
DeviceInfo known_device(int architecture);

/// Sets `limits` from the fields: the canonical text that is part of a measurement's identity.
void describe_limits(DeviceInfo& info);
/// The fields that such a text tells of; none where it is not one.
std::optional<DeviceInfo> device_of_limits(const std::string& limits);

}  // namespace rowtune::cuda
