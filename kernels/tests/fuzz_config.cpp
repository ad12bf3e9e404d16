// Names of configs, as users type them, dispatch tables carry them, and databases hold them.

#include "kernels/cuda/known_devices.hpp"
#include "kernels/space.hpp"
#include "kernels/tests/fuzz.hpp"

using namespace rowtune;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const DeviceInfo gpu = cuda::known_device(90);
  static const DeviceInfo cpu = [] {
    DeviceInfo info;
    info.id = "cpu", info.units = 4, info.architecture = 8, info.cache_bytes = 32 << 20;
    return info;
  }();
  const std::string_view name = fuzz::text_of(data, size);
  try {
    fuzz::require(split_config_name(name).name() == name, "a config name is reversible");
  } catch (const UsageError&) {
    return 0;
  }
  for (const DeviceInfo& device : {gpu, cpu})
    for (const Operation op : all_operations())
      for (const Shape shape : {Shape::of(8, 1), Shape::of(4097, 1023), Shape::of(2, 131072)}) {
        try {
          parse_config(name, Workload::of(op, Dtype::bf16, shape), device);
        } catch (const UsageError&) {
        }
      }
  return 0;
}
