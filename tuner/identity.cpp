#include "tuner/identity.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <array>
#include <ctime>

namespace rowtune {

db::MeasurementKey key_of(const DeviceInfo& device, const std::string& source_fingerprint, const Workload& workload,
                          const std::string& config) {
  db::MeasurementKey key;
  key.device_model = device.model;
  key.device_limits = device.limits;
  key.toolchain = device.toolchain;
  key.source_fingerprint = source_fingerprint;
  key.workload = workload;
  key.config = config;
  return key;
}

db::MeasurementKey key_of(const Device& device, const Workload& workload, const std::string& config) {
  return key_of(device.info(), device.source_fingerprint(workload.op), workload, config);
}

db::Provenance provenance_of(const DeviceInfo& device) {
  db::Provenance provenance;
  provenance.device = device.id;
  provenance.uuid = device.uuid;
  provenance.driver = device.driver;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) provenance.host = host.data();
  provenance.rowtune_version = rowtune_version();
  provenance.started_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return provenance;
}

std::string rowtune_version() { return ROWTUNE_VERSION; }

}  // namespace rowtune
