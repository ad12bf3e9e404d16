#include "kernels/cuda/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <utility>

namespace rowtune::cuda {
namespace {

// What is used of NVML's ABI, which is stable (NVML API Reference Manual).
using NvmlDevice = struct nvmlDevice_st*;
constexpr int nvml_success = 0;
constexpr int clock_sm = 1, clock_memory = 2;

struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr Reason reasons[] = {{0x1, "idle"},        {0x2, "application_clocks"}, {0x4, "power_cap"},
                              {0x8, "hw_slowdown"}, {0x10, "sync_boost"},        {0x20, "sw_thermal"},
                              {0x40, "hw_thermal"}, {0x80, "hw_power_brake"},    {0x100, "display_clocks"}};

}  // namespace

std::string throttle_text(unsigned long long bits) {
  std::string text;
  for (const Reason& reason : reasons) {
    if ((bits & reason.bit) == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ",", reason.name);
    bits &= ~reason.bit;
  }
  if (bits != 0) text += fmt::format("{}0x{:x}", text.empty() ? "" : ",", bits);
  return text;
}

struct Nvml::Library {
  void* handle = nullptr;
  NvmlDevice device = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_uuid)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*throttle)(NvmlDevice, unsigned long long*) = nullptr;
  int (*energy)(NvmlDevice, unsigned long long*) = nullptr;
  const char* (*error)(int) = nullptr;
  bool initialised = false;

  template <class F>
  bool find(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    return function != nullptr;
  }
  ~Library() {
    if (initialised) shutdown();
    if (handle) dlclose(handle);
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::~Nvml() = default;

std::unique_ptr<Nvml> Nvml::open(const std::string& uuid, std::string* why) {
  const auto refuse = [why](const std::string& reason) {
    if (why) *why = reason;
    return nullptr;
  };
  auto library = std::make_unique<Library>();
  library->handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) return refuse("NVML (libnvidia-ml.so.1), which comes with the NVIDIA driver, is not here");
  if (!library->find("nvmlInit_v2", library->init) || !library->find("nvmlShutdown", library->shutdown) ||
      !library->find("nvmlDeviceGetHandleByUUID", library->by_uuid) ||
      !library->find("nvmlDeviceGetClockInfo", library->clock) || !library->find("nvmlErrorString", library->error))
    return refuse("the NVML found here lacks functions: it is too old or damaged");
  // Renamed in driver 535; both may be missing, and so may the energy counter.
  if (!library->find("nvmlDeviceGetCurrentClocksEventReasons", library->throttle))
    library->find("nvmlDeviceGetCurrentClocksThrottleReasons", library->throttle);
  library->find("nvmlDeviceGetTotalEnergyConsumption", library->energy);
  if (const int error = library->init(); error != nvml_success)
    return refuse(fmt::format("NVML cannot begin: {}", library->error(error)));
  library->initialised = true;
  if (const int error = library->by_uuid(uuid.c_str(), &library->device); error != nvml_success)
    return refuse(fmt::format("NVML does not know the GPU {}: {}", uuid, library->error(error)));
  return std::unique_ptr<Nvml>(new Nvml(std::move(library)));
}

std::optional<GpuState> Nvml::state() const {
  GpuState state;
  if (library_->clock(library_->device, clock_sm, &state.sm_mhz) != nvml_success ||
      library_->clock(library_->device, clock_memory, &state.memory_mhz) != nvml_success)
    return std::nullopt;
  if (library_->throttle && library_->throttle(library_->device, &state.throttle_reasons) != nvml_success)
    state.throttle_reasons = 0;
  return state;
}

std::optional<double> Nvml::energy_joules() const {
  unsigned long long millijoules = 0;
  if (!library_->energy || library_->energy(library_->device, &millijoules) != nvml_success) return std::nullopt;
  return 1e-3 * static_cast<double>(millijoules);
}

}  // namespace rowtune::cuda
