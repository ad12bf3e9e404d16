#include "kernels/cuda/known_devices.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace rowtune::cuda {

void describe_limits(DeviceInfo& d) {
  d.limits = fmt::format("sm_{} units={} threads={}/{} registers={} shared={}/{} cluster={} l2={}", d.architecture,
                         d.units, d.max_threads_per_block, d.max_threads_per_unit, d.registers_per_unit,
                         d.shared_bytes_per_block, d.shared_bytes_per_unit, d.max_cluster, d.cache_bytes);
}

std::optional<DeviceInfo> device_of_limits(const std::string& limits) {
  DeviceInfo d;
  d.id = "cuda:0";
  d.kind = DeviceKind::cuda;
  long long cache = 0;
  if (std::sscanf(limits.c_str(), "sm_%d units=%d threads=%d/%d registers=%d shared=%d/%d cluster=%d l2=%lld",
                  &d.architecture, &d.units, &d.max_threads_per_block, &d.max_threads_per_unit, &d.registers_per_unit,
                  &d.shared_bytes_per_block, &d.shared_bytes_per_unit, &d.max_cluster, &cache) != 9)
    return std::nullopt;
  d.cache_bytes = cache;
  d.limits = limits;
  return d;
}

DeviceInfo known_device(int architecture) {
  struct Row {
    int architecture;
    const char* model;
    int units, threads_per_unit, shared_per_block, shared_per_unit, max_cluster;
    std::int64_t cache_mib, memory_gib;
    double peak_gbps;
  };
  constexpr Row rows[] = {
      {75, "Tesla T4", 40, 1024, 64 * 1024, 64 * 1024, 0, 4, 16, 320},
      {80, "NVIDIA A100-SXM4-80GB", 108, 2048, 163 * 1024, 164 * 1024, 0, 40, 80, 2039},
      {90, "NVIDIA H200", 132, 2048, 227 * 1024, 228 * 1024, 16, 50, 141, 4800},
      {100, "NVIDIA B200", 148, 2048, 227 * 1024, 228 * 1024, 16, 126, 180, 8000},
  };
  for (const Row& r : rows) {
    if (r.architecture != architecture) continue;
    DeviceInfo d;
    d.id = fmt::format("sm_{}", architecture);
    d.kind = DeviceKind::cuda;
    d.model = r.model;
    d.toolchain = "none";
    d.architecture = architecture;
    d.units = r.units;
    d.cache_bytes = r.cache_mib << 20;
    d.memory_bytes = r.memory_gib << 30;
    d.peak_gbps = r.peak_gbps;
    d.max_threads_per_block = 1024;
    d.max_threads_per_unit = r.threads_per_unit;
    d.registers_per_unit = 65536;
    d.shared_bytes_per_block = r.shared_per_block;
    d.shared_bytes_per_unit = r.shared_per_unit;
    d.max_cluster = r.max_cluster;
    describe_limits(d);
    return d;
  }
  throw UsageError(fmt::format("no limits are known for sm_{}; there are sm_75, sm_80, sm_90, sm_100", architecture));
}

}  // namespace rowtune::cuda
