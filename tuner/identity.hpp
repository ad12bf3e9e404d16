#pragma once
// Who measured what: the key of a measurement and its provenance, from a device.

#include "db/records.hpp"
#include "kernels/device.hpp"

namespace rowtune {

/// The key of `config`; leave it empty to ask for every config of the workload.
db::MeasurementKey key_of(const DeviceInfo& device, const std::string& source_fingerprint, const Workload& workload,
                          const std::string& config = "");
db::MeasurementKey key_of(const Device& device, const Workload& workload, const std::string& config = "");

/// Device, driver, host, program version, and the time now as the start of the run.
db::Provenance provenance_of(const DeviceInfo& device);

std::string rowtune_version();

}  // namespace rowtune
