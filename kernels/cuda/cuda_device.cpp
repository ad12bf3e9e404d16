#include "kernels/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <thread>

#include "kernels/cuda/cuda_bench.hpp"
#include "kernels/cuda/known_devices.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/cuda/sources.hpp"

namespace rowtune::cuda {
namespace {

int attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, index) != cudaSuccess) cudaGetLastError();
  return value;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

DeviceInfo info_of(int index, const std::string& toolchain, const std::string& driver) {
  DeviceInfo d;
  d.id = fmt::format("cuda:{}", index);
  d.kind = DeviceKind::cuda;
  cudaDeviceProp properties{};
  if (const auto error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
    cudaGetLastError();
    d.model = "unknown";
    d.usable = false;
    d.why_unusable = fmt::format("its properties cannot be read: {}", cudaGetErrorString(error));
    return d;
  }
  d.model = properties.name;
  d.uuid = uuid_text(properties.uuid);
  d.driver = driver;
  d.toolchain = toolchain;
  d.architecture = properties.major * 10 + properties.minor;
  d.units = properties.multiProcessorCount;
  d.cache_bytes = properties.l2CacheSize;
  d.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  // Two transfers a clock; clock in kHz, width in bits.
  d.peak_gbps =
      2.0 * attribute(cudaDevAttrMemoryClockRate, index) * attribute(cudaDevAttrGlobalMemoryBusWidth, index) / 8 / 1e6;
  d.max_threads_per_block = properties.maxThreadsPerBlock;
  d.max_threads_per_unit = properties.maxThreadsPerMultiProcessor;
  d.registers_per_unit = properties.regsPerMultiprocessor;
  d.shared_bytes_per_block = static_cast<int>(properties.sharedMemPerBlockOptin);
  d.shared_bytes_per_unit = static_cast<int>(properties.sharedMemPerMultiprocessor);
  d.max_cluster = attribute(cudaDevAttrClusterLaunch, index) ? 16 : 0;
  describe_limits(d);
  if (d.architecture < 75) {
    d.usable = false;
    d.why_unusable = fmt::format("it is sm_{}; the kernels need sm_75 (Turing) or newer", d.architecture);
  }
  return d;
}

class CudaDevice : public Device {
 public:
  /// Touches no GPU before `open`: a program that only compiles takes none of its memory.
  CudaDevice(int index, DeviceInfo info) : index_(index), info_(std::move(info)) {}

  const DeviceInfo& info() const override { return info_; }

  std::string source(const Workload& workload, const Config& config) const override {
    return plan_kernel(workload, config).source;
  }
  void compile(const std::string& source) override { binary_of(source); }

  std::unique_ptr<Bench> open(const Workload& workload) override {
    check(cudaSetDevice(index_), fmt::format("choosing device {}", index_));
    // What has more elements than there are bytes: its bytes may be too many to count.
    if (workload.shape.rows > info_.memory_bytes / std::max<std::int64_t>(1, workload.shape.ld))
      throw ConfigFailure(Outcome::out_of_memory, fmt::format("{} needs more than the {} MiB of {}",
                                                              to_string(workload), info_.memory_bytes >> 20, info_.id));
    return make_bench(workload, info_, [this](const std::string& source) { return binary_of(source); });
  }

  void compute(const Workload& workload, const Config& config, const HostTensors& tensors) override {
    check(cudaSetDevice(index_), fmt::format("choosing device {}", index_));
    compute_once(workload, config, tensors, info_, [this](const std::string& source) { return binary_of(source); });
  }

  std::string source_fingerprint(Operation op) const override { return kernel_fingerprint(op); }

 private:
  /// Keeps what was compiled: the disk cache may be missing.
  Binary binary_of(const std::string& source) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = binaries_.find(source); at != binaries_.end()) return at->second;
    }
    Binary binary = compiler_.compile(source, info_.architecture);
    const std::lock_guard lock(mutex_);
    return binaries_.emplace(source, std::move(binary)).first->second;
  }

  int index_;
  DeviceInfo info_;
  Compiler compiler_;
  std::mutex mutex_;
  std::map<std::string, Binary> binaries_;
};

DeviceInfo unusable(const std::string& why) {
  DeviceInfo d;
  d.id = "cuda:0";
  d.kind = DeviceKind::cuda;
  d.model = "none";
  d.usable = false;
  d.why_unusable = why;
  return d;
}

}  // namespace

std::vector<DeviceInfo> list_cuda_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    int driver = 0;
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    if (driver == 0) return {unusable("no NVIDIA driver is loaded on this machine")};
    if (error == cudaErrorInsufficientDriver)
      return {
          unusable(fmt::format("the NVIDIA driver supports CUDA {}.{}, and this program needs {}.{} or newer",
                               driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10))};
    return {unusable(error == cudaSuccess || error == cudaErrorNoDevice ? "there is a driver but no GPU"
                                                                        : cudaGetErrorString(error))};
  }
  std::string toolchain, trouble;
  try {
    toolchain = Compiler().version();
  } catch (const EnvironmentError& e) {
    trouble = e.what();
  }
  int driver = 0;
  cudaDriverGetVersion(&driver);
  const std::string driver_text = fmt::format("CUDA {}.{}", driver / 1000, driver % 1000 / 10);
  std::vector<DeviceInfo> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(info_of(i, toolchain, driver_text));
    if (devices.back().usable && !trouble.empty()) {
      devices.back().usable = false;
      devices.back().why_unusable = trouble;
    }
  }
  return devices;
}

std::unique_ptr<Device> open_cuda_compiler(const DeviceInfo& device) {
  constexpr int no_device = -1;
  return std::make_unique<CudaDevice>(no_device, device);
}

bool has_compile_cache() { return !Compiler::default_cache().empty(); }

std::unique_ptr<Device> open_cuda_device(int index) {
  const auto devices = list_cuda_devices();
  if (index < 0 || index >= static_cast<int>(devices.size()) || !devices[static_cast<std::size_t>(index)].usable)
    throw EnvironmentError(fmt::format("device cuda:{} cannot be used", index));
  return std::make_unique<CudaDevice>(index, devices[static_cast<std::size_t>(index)]);
}

}  // namespace rowtune::cuda
