#include <charconv>

#include <fmt/format.h>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cuda/cuda_device.hpp"
#include "kernels/device.hpp"

namespace rowtune {

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices = cuda::list_cuda_devices();
  devices.push_back(cpu_device_info());
  return devices;
}

std::unique_ptr<Device> open_device(const std::string& id, std::string* why) {
  if (id == "cpu") return open_cpu_device();
  if (id == "auto") {
    std::string reason;
    for (const auto& device : cuda::list_cuda_devices()) {
      if (device.usable) {
        if (why) *why = fmt::format("auto: {} ({}) is a working GPU", device.id, device.model);
        return open_device(device.id);
      }
      if (reason.empty()) reason = device.why_unusable;
    }
    if (why) *why = fmt::format("auto: cpu, since there is no working GPU here: {}", reason);
    return open_cpu_device();
  }
  constexpr std::string_view prefix = "cuda:";
  int index = -1;
  if (id.starts_with(prefix)) {
    const char* end = id.data() + id.size();
    const auto [at, error] = std::from_chars(id.data() + prefix.size(), end, index);
    if (error != std::errc() || at != end) index = -1;
  }
  if (index < 0)
    throw UsageError(fmt::format("unknown device '{}'; choose from auto, cpu, cuda:N (such as cuda:0)", id));
  std::string found;
  for (const auto& device : cuda::list_cuda_devices()) {
    if (device.id == id && device.usable) return cuda::open_cuda_device(index);
    if (device.id == id || found.empty()) found = device.why_unusable;
  }
  if (found.empty()) found = "there are fewer GPUs than that";
  throw EnvironmentError(
      fmt::format("device {} cannot be used: {}. `rowtune devices` shows what is here; --device cpu works "
                  "everywhere",
                  id, found));
}

}  // namespace rowtune
