#pragma once
// The line protocol between the program and its workers: one JSON object a line, requests on the worker's standard
// input, one answer to each on its standard output. A worker begins with a line that says who it is.
//
//   worker  {"worker": 1, "device": {...}, "fingerprints": {"softmax": "..."}, "provenance": {...}}
//   request {"do": "measure", ...}     answer {"measurement": {...}, "open_seconds": s, "busy_seconds": s}
//   request {"do": "interleave", ...}  answer {"samples": [[us, ...], ...], ...} or {"failure": {"outcome", "message"}}
//   request {"do": "energy", ...}      answer {"joules": [J or null, ...], ...} or {"failure": ...}
//   request {"do": "release"}          answer {}
//   instead of any answer              {"error": "..."}: the device is gone, no other request would fare better

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "db/records.hpp"
#include "kernels/device.hpp"
#include "tuner/measurer.hpp"

namespace rowtune {

inline constexpr int worker_protocol = 1;

/// One line, without the newline; what is not UTF-8 in it is replaced.
std::string line_of(const nlohmann::json& message);

nlohmann::json to_json(const MeasureRequest& request);
nlohmann::json to_json(const InterleaveRequest& request);
nlohmann::json to_json(const EnergyRequest& request);
nlohmann::json to_json(const db::Measurement& measurement);
nlohmann::json to_json(const std::vector<std::optional<double>>& numbers);  ///< absent is null
nlohmann::json to_json(const DeviceInfo& device);
nlohmann::json to_json(const db::Provenance& provenance);

/// These throw nlohmann::json::exception or UsageError for what is no such thing.
MeasureRequest measure_request_from(const nlohmann::json& json);
InterleaveRequest interleave_request_from(const nlohmann::json& json);
EnergyRequest energy_request_from(const nlohmann::json& json);
db::Measurement measurement_from(const nlohmann::json& json);
std::vector<std::optional<double>> numbers_from(const nlohmann::json& json);
DeviceInfo device_from(const nlohmann::json& json);
db::Provenance provenance_from(const nlohmann::json& json);

}  // namespace rowtune
