#include "kernels/cpu/cpu_device.hpp"

#include <fmt/format.h>

#include "cpu_fingerprints.hpp"
#include "kernels/cpu/bench.hpp"
#include "kernels/cpu/kernel.hpp"
#include "kernels/cpu/processor.hpp"
#include "kernels/errors.hpp"

namespace rowtune {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

class CpuDevice final : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }

  std::unique_ptr<Bench> open(const Workload& workload) override { return cpu::open_bench(workload, info_); }

  void compute(const Workload& workload, const Config& config, const HostTensors& tensors) override {
    cpu::compute_once(workload, config, tensors, info_);
  }

  std::string source_fingerprint(Operation) const override {
    return fmt::format("{}-{}-{}", cpu::sources_hash, compiler(), cpu::simd_target());
  }

 private:
  DeviceInfo info_ = cpu_device_info();
};

}  // namespace

DeviceInfo cpu_device_info() {
  const cpu::Processor processor = cpu::read_processor();
  DeviceInfo info;
  info.id = "cpu";
  info.kind = DeviceKind::cpu;
  info.model = processor.model;
  info.limits = fmt::format("threads={} l1={}K l2={}K llc={}K simd={}", processor.threads, processor.l1_bytes >> 10,
                            processor.l2_bytes >> 10, processor.llc_bytes >> 10, cpu::simd_target());
  info.toolchain = fmt::format("{}, Highway {}", compiler(), cpu::highway_version());
  info.architecture = cpu::simd_lanes();
  info.units = processor.threads;
  info.cache_bytes = processor.llc_bytes;
  info.memory_bytes = processor.memory_bytes;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    info.usable = false;
    info.why_unusable = "its processor lacks AVX2 and FMA, which x86 processors have had since 2013";
  }
#endif
  return info;
}

std::unique_ptr<Device> open_cpu_device() {
  const DeviceInfo info = cpu_device_info();
  if (!info.usable) throw EnvironmentError(fmt::format("the device cpu cannot be used: {}", info.why_unusable));
  return std::make_unique<CpuDevice>();
}

}  // namespace rowtune
