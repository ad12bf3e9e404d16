#pragma once
// The device of a worker, as the scheduling side sees it: its identity, its spaces, and compiling ahead for it.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "kernels/device.hpp"
#include "tuner/compile_processes.hpp"
#include "tuner/worker_measurer.hpp"

namespace rowtune {

class WorkerDevice : public Device {
 public:
  explicit WorkerDevice(const WorkerMeasurer& worker);

  const DeviceInfo& info() const override { return info_; }
  std::string source_fingerprint(Operation op) const override { return fingerprints_.at(op); }
  /// Into the cache on disk, which the worker reads: useful where both see the same one. Without a compiler here the
  /// worker compiles for itself.
  std::string source(const Workload& workload, const Config& config) const override;
  void compile(const std::string& source) override;
  /// What runs on the device is the worker's: these throw std::logic_error.
  std::unique_ptr<Bench> open(const Workload& workload) override;
  void compute(const Workload& workload, const Config& config, const HostTensors& tensors) override;

 private:
  DeviceInfo info_;
  std::map<Operation, std::string> fingerprints_;
  std::unique_ptr<Device> compiler_;  ///< absent: nothing to compile, or nothing to compile with
  std::optional<CompileProcesses> processes_;
};

}  // namespace rowtune
