#pragma once
// Measures configs on a device of this process.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device.hpp"
#include "tuner/measurer.hpp"

namespace rowtune {

namespace cuda {
class Nvml;
}

using Clock = std::function<double()>;  ///< seconds since some moment; tests bring their own
double steady_seconds();

class DeviceMeasurer : public Measurer {
 public:
  explicit DeviceMeasurer(Device& device, Clock now = steady_seconds);
  ~DeviceMeasurer() override;

  const db::Provenance& provenance() const { return provenance_; }

  db::Measurement describe(const MeasureRequest& request) const;
  db::Measurement measure(const MeasureRequest& request) override;
  std::vector<std::vector<double>> interleave(const InterleaveRequest& request) override;
  std::vector<std::optional<double>> energy(const EnergyRequest& request) override;
  double open_seconds() const override { return open_seconds_; }
  double busy_seconds() const override { return busy_seconds_; }
  void release() override;

 private:
  void open(const Workload& workload);

  Device& device_;
  Clock now_;
  std::unique_ptr<cuda::Nvml> nvml_;  ///< null on cpu, and where there is none
  db::Provenance provenance_;         ///< of this run
  std::optional<Workload> opened_;
  double open_seconds_ = 0;
  double busy_seconds_ = 0;
  std::unique_ptr<Bench> bench_;  ///< of the last workload: consecutive configs share its buffers
};

/// What is known of a config before anything runs.
db::Measurement describe_config(const DeviceInfo& device, const std::string& source_fingerprint,
                                const db::Provenance& provenance, const MeasureRequest& request);

/// A sentence when `microseconds` is less than the memory's peak allows (3 % slack); otherwise empty.
/// Only cold inputs must come from DRAM.
std::string implausible(const Workload& workload, const DeviceInfo& device, double microseconds);

}  // namespace rowtune
