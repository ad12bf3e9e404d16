#pragma once
// A device compiles a config into a kernel, checks it, launches it and times it. Two implementations:
// kernels/cuda (NVRTC at run time) and kernels/cpu (SIMD and threads, compiled with the program).

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/config.hpp"
#include "kernels/words.hpp"

namespace rowtune {

enum class DeviceKind { cpu, cuda };
std::string to_string(DeviceKind kind);

/// What a device is and the limits that matter to a space. Plain data: spaces and tests build it without a device.
struct DeviceInfo {
  std::string id;  ///< `cpu`, `cuda:0`
  DeviceKind kind = DeviceKind::cpu;
  std::string model;      ///< `NVIDIA H200`; the processor's name
  std::string limits;     ///< canonical text of the limits: part of a measurement's identity
  std::string toolchain;  ///< `NVRTC 13.0`; compiler and SIMD library
  std::string uuid;       ///< provenance only; empty where there is none
  std::string driver;     ///< provenance only
  bool usable = true;
  std::string why_unusable;  ///< a sentence, when it is not

  int architecture = 0;          ///< cuda: 90 for sm_90; cpu: fp32 lanes of a SIMD vector
  int units = 1;                 ///< multiprocessors; cpu: usable hardware threads
  std::int64_t cache_bytes = 0;  ///< the last cache before DRAM
  std::int64_t memory_bytes = 0;
  double peak_gbps = 0;           ///< DRAM bandwidth by the data sheet of clock and width; 0 when unknown
  int max_threads_per_block = 0;  ///< cuda only, as are those below
  int max_threads_per_unit = 0;
  int registers_per_unit = 0;
  int shared_bytes_per_block = 0;  ///< with opt-in
  int shared_bytes_per_unit = 0;
  int max_cluster = 0;  ///< blocks of a cluster: 0 none, 8 portable, 16 with opt-in
};

/// What the compiler and the loader say of a kernel.
struct KernelFacts {
  int registers = 0;
  int spill_bytes = 0;
  int shared_bytes = 0;
  int blocks_per_unit = 0;
  std::string binary_hash;  ///< of the cubin; empty on cpu
};

/// The check of a kernel's whole output against the fp64 oracle.
struct Verification {
  bool right = false;
  double max_error_ulp =
      0;  ///< in ulps of the output dtype at error_size (rowtune/tolerance.cuh); NaN when non-finite kinds differ
  std::string what;  ///< when wrong: how many elements, the first of them, both values and the tolerance
};

/// One config of one workload, loaded and ready. Everything throws ConfigFailure.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual KernelFacts facts() const = 0;
  /// Poisons the outputs, runs once, checks every element and the canaries.
  virtual Verification verify() = 0;
  /// One timing sample in microseconds per launch: a batch of launches in the workload's regime.
  virtual double sample() = 0;
  /// Launches once and waits (for a profiler).
  virtual void launch() = 0;
};

/// The buffers of one workload on a device, filled with test data and rotated as its regime asks.
class Bench {
 public:
  virtual ~Bench() = default;
  virtual std::unique_ptr<Kernel> load(const Config& config) = 0;
  /// Launches that one sample averages over, and the bytes they touch before an address comes again.
  virtual std::int64_t launches_per_sample() const = 0;
  virtual std::int64_t bytes_in_rotation() const = 0;
};

/// The tensors of one launch in the caller's memory, laid out as the workload says: element (0, 0) of a matrix lies
/// shape.off elements after the pointer, rows shape.ld apart; weight and bias are `cols` contiguous elements. Null
/// where the workload has none.
struct HostTensors {
  const void* input = nullptr;
  const void* residual = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;
  void* output = nullptr;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  /// What `compile` takes for a config: many shapes and configs come to the same source. Empty where nothing is
  /// compiled at run time.
  virtual std::string source(const Workload&, const Config&) const { return {}; }
  /// Compiles ahead what `Bench::load` will ask for. Called from many threads at a time, while others open, load and
  /// sample. Throws ConfigFailure; `Bench::load` throws it again.
  virtual void compile(const std::string&) {}
  /// Allocates and fills the buffers. Throws ConfigFailure(out_of_memory) when they do not fit.
  virtual std::unique_ptr<Bench> open(const Workload& workload) = 0;
  /// Runs a config once on the caller's data and leaves the result in `tensors.output`, also where the operation works
  /// in place. Throws ConfigFailure.
  virtual void compute(const Workload& workload, const Config& config, const HostTensors& tensors) = 0;
  /// Fingerprint of every source that the kernels of this operation are made of, compile flags included.
  virtual std::string source_fingerprint(Operation op) const = 0;
};

/// What this machine offers: every CUDA device, usable or not, then `cpu`. Never throws; a machine without a driver
/// gets one entry `cuda:0` that says why it is unusable.
std::vector<DeviceInfo> list_devices();

/// `auto` (the first usable GPU, else cpu), `cpu`, `cuda:N`. Throws EnvironmentError with the reason when it cannot be
/// used, UsageError when there is no such word. `*why` (optional) receives the sentence about the choice of `auto`.
std::unique_ptr<Device> open_device(const std::string& id, std::string* why = nullptr);

/// Version of the measuring protocol: part of a measurement's identity; raise it when times stop being comparable.
/// 2: the cache is flushed by writing, then reading.
inline constexpr int measuring_protocol = 2;

}  // namespace rowtune
