// The CUDA devices of a build without a CUDA Toolkit.

#include "kernels/cuda/cuda_device.hpp"

namespace rowtune::cuda {

std::vector<DeviceInfo> list_cuda_devices() {
  DeviceInfo d;
  d.id = "cuda:0";
  d.kind = DeviceKind::cuda;
  d.model = "none";
  d.usable = false;
  d.why_unusable =
      "this rowtune was built without a CUDA Toolkit (12.8 or newer): build it again where one is installed";
  return {d};
}

std::unique_ptr<Device> open_cuda_device(int) { throw EnvironmentError(list_cuda_devices().front().why_unusable); }

std::unique_ptr<Device> open_cuda_compiler(const DeviceInfo&) { return open_cuda_device(0); }

bool has_compile_cache() { return false; }

}  // namespace rowtune::cuda
