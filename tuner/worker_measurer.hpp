#pragma once
// Measures in a worker process, so that a config that crashes, hangs or ruins the device costs one config and a worker.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tuner/measure.hpp"
#include "tuner/measurer.hpp"
#include "tuner/worker_process.hpp"

namespace rowtune {

struct WorkerSettings {
  std::vector<std::string> launcher;  ///< words before the program's own: `srun`, `--gpus=1`
  std::string program;                ///< empty: this one
  std::string device = "cpu";
  double timeout_seconds = 60;  ///< of one config, its buffers included
  double start_seconds = 120;   ///< until a worker says who it is: a launcher may have to wait for a node
};

class WorkerMeasurer : public Measurer {
 public:
  /// Starts the first worker. Throws EnvironmentError when none starts, with the worker's own reason.
  explicit WorkerMeasurer(WorkerSettings settings);
  ~WorkerMeasurer() override;

  /// A crash, a hang, a refused launch or a worker that dies: the worker is replaced and the config tried once more
  /// alone in the new one. When that fails too, the first error is the result.
  db::Measurement measure(const MeasureRequest& request) override;
  std::vector<std::vector<double>> interleave(const InterleaveRequest& request) override;
  std::vector<std::optional<double>> energy(const EnergyRequest& request) override;
  double open_seconds() const override { return open_seconds_; }
  double busy_seconds() const override { return busy_before_ + busy_seconds_; }
  void release() override;

  const DeviceInfo& device() const { return device_; }
  const std::string& program() const { return settings_.program; }  ///< what its worker runs
  const std::string& source_fingerprint(Operation op) const { return fingerprints_.at(op); }
  int workers_started() const { return started_; }

 private:
  void start();
  void retire();  ///< of a worker that is not to be trusted
  nlohmann::json ask(const nlohmann::json& request, double seconds);
  nlohmann::json ask_about_configs(const nlohmann::json& request, double seconds);
  db::Measurement try_once(const MeasureRequest& request);

  WorkerSettings settings_;
  std::unique_ptr<WorkerProcess> process_;
  DeviceInfo device_;
  db::Provenance provenance_;
  std::map<Operation, std::string> fingerprints_;
  double open_seconds_ = 0;
  double busy_seconds_ = 0, busy_before_ = 0;  ///< of this worker, and of those before it
  int started_ = 0;
};

}  // namespace rowtune
