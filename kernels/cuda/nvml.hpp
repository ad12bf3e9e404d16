#pragma once
// The management library of the NVIDIA driver, loaded when it is first needed: clocks, throttling, energy. Needs
// neither a CUDA Toolkit nor nvml.h; a machine without it says so.

#include <memory>
#include <optional>
#include <string>

namespace rowtune::cuda {

/// What a GPU does at this moment.
struct GpuState {
  unsigned sm_mhz = 0, memory_mhz = 0;
  unsigned long long throttle_reasons = 0;  ///< NVML's bits
};

/// `idle`, `power_cap`, `thermal`... of NVML's bits; none when it runs as fast as it may.
std::string throttle_text(unsigned long long reasons);

class Nvml {
 public:
  /// The GPU with this UUID (`GPU-...`). Null when that cannot be had; `*why` then holds a sentence.
  static std::unique_ptr<Nvml> open(const std::string& uuid, std::string* why = nullptr);
  ~Nvml();

  std::optional<GpuState> state() const;
  /// Joules since the driver was loaded, of the whole GPU; absent where it has no such counter (before Volta).
  std::optional<double> energy_joules() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

}  // namespace rowtune::cuda
