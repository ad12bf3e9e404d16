#pragma once
// What a look-up asks of the current device, read once for each, for nvcc, C++17.

#include <cuda_runtime.h>

#include <cstring>
#include <mutex>

#include "rowtune/dispatch/lookup.cuh"

namespace rowtune {
namespace dispatch {

constexpr int most_devices = 64;  ///< whose facts are kept; others are refused

struct DeviceFacts {
  std::once_flag once;
  cudaError_t error = cudaSuccess;
  Device device{};
  char model[256] = {};
};

inline cudaError_t read_facts(int index, DeviceFacts& facts) {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) return error;
  static_assert(sizeof facts.model >= sizeof properties.name, "a device's name fits");
  std::memcpy(facts.model, properties.name, sizeof properties.name);
  facts.device = {facts.model,
                  properties.major * 10 + properties.minor,
                  properties.multiProcessorCount,
                  properties.maxThreadsPerBlock,
                  properties.maxThreadsPerMultiProcessor,
                  properties.regsPerMultiprocessor,
                  static_cast<int>(properties.sharedMemPerBlockOptin),
                  static_cast<int>(properties.sharedMemPerMultiprocessor),
                  properties.l2CacheSize};
  return cudaSuccess;
}

/// What the current device is; read once.
inline cudaError_t current_device(int& index, const Device*& device) {
  static DeviceFacts all[most_devices];
  if (const cudaError_t error = cudaGetDevice(&index); error != cudaSuccess) return error;
  if (index >= most_devices) return cudaErrorInvalidDevice;
  DeviceFacts& facts = all[index];
  std::call_once(facts.once, [&] { facts.error = read_facts(index, facts); });
  device = &facts.device;
  return facts.error;
}

}  // namespace dispatch
}  // namespace rowtune
