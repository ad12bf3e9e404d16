#include "tuner/protocol.hpp"

#include <nlohmann/json.hpp>

namespace rowtune {

using nlohmann::json;

namespace {

json number(const std::optional<double>& value) { return value ? json(*value) : json(); }

std::optional<double> number_from(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<double>();
}

json workload_json(const Workload& w) {
  return {{"op", to_string(w.op)},
          {"dtype", to_string(w.dtype)},
          {"shape", to_string(w.shape)},
          {"regime", to_string(w.regime)},
          {"options", to_string(w.options)}};
}

Workload workload_from_json(const json& j) {
  Workload w;
  w.op = parse_operation(j.at("op").get<std::string>());
  w.dtype = parse_dtype(j.at("dtype").get<std::string>());
  w.shape = parse_shape(j.at("shape").get<std::string>());
  w.regime = parse_regime(j.at("regime").get<std::string>());
  w.options = parse_options(j.at("options").get<std::string>());
  return w;
}

}  // namespace

std::string line_of(const json& message) { return message.dump(-1, ' ', false, json::error_handler_t::replace); }

json to_json(const MeasureRequest& r) {
  return {{"do", "measure"},
          {"workload", workload_json(r.workload)},
          {"config", r.config},
          {"eligible", r.eligible},
          {"is_base", r.is_base},
          {"attempt", r.attempt},
          {"time_to_beat_us", number(r.time_to_beat_us)},
          {"min_samples", r.limits.min_samples},
          {"max_samples", r.limits.max_samples},
          {"max_seconds", r.limits.max_seconds},
          {"relative_half_width", r.limits.relative_half_width}};
}

MeasureRequest measure_request_from(const json& j) {
  MeasureRequest r;
  r.workload = workload_from_json(j.at("workload"));
  r.config = j.at("config");
  r.eligible = j.at("eligible");
  r.is_base = j.at("is_base");
  r.attempt = j.at("attempt");
  r.time_to_beat_us = number_from(j.at("time_to_beat_us"));
  r.limits.min_samples = j.at("min_samples");
  r.limits.max_samples = j.at("max_samples");
  r.limits.max_seconds = j.at("max_seconds");
  r.limits.relative_half_width = j.at("relative_half_width");
  return r;
}

json to_json(const InterleaveRequest& r) {
  return {{"do", "interleave"},   {"workload", workload_json(r.workload)},
          {"configs", r.configs}, {"fresh_buffers", r.fresh_buffers},
          {"rounds", r.rounds},   {"max_seconds", r.max_seconds}};
}

InterleaveRequest interleave_request_from(const json& j) {
  InterleaveRequest r;
  r.workload = workload_from_json(j.at("workload"));
  r.configs = j.at("configs").get<std::vector<std::string>>();
  r.fresh_buffers = j.at("fresh_buffers");
  r.rounds = j.at("rounds");
  r.max_seconds = j.at("max_seconds");
  return r;
}

json to_json(const EnergyRequest& r) {
  return {{"do", "energy"}, {"workload", workload_json(r.workload)}, {"configs", r.configs}, {"seconds", r.seconds}};
}

EnergyRequest energy_request_from(const json& j) {
  return {workload_from_json(j.at("workload")), j.at("configs").get<std::vector<std::string>>(), j.at("seconds")};
}

json to_json(const std::vector<std::optional<double>>& numbers) {
  json list = json::array();
  for (const auto& each : numbers) list.push_back(number(each));
  return list;
}

std::vector<std::optional<double>> numbers_from(const json& j) {
  std::vector<std::optional<double>> numbers;
  for (const json& each : j) numbers.push_back(number_from(each));
  return numbers;
}

json to_json(const db::Provenance& p) {
  return {{"device", p.device},           {"uuid", p.uuid},
          {"driver", p.driver},           {"host", p.host},
          {"version", p.rowtune_version}, {"started_at", p.started_at}};
}

db::Provenance provenance_from(const json& j) {
  db::Provenance p;
  p.device = j.at("device"), p.uuid = j.at("uuid"), p.driver = j.at("driver"), p.host = j.at("host");
  p.rowtune_version = j.at("version"), p.started_at = j.at("started_at");
  return p;
}

json to_json(const db::Measurement& m) {
  return {
      {"key",
       {{"model", m.key.device_model},
        {"limits", m.key.device_limits},
        {"toolchain", m.key.toolchain},
        {"fingerprint", m.key.source_fingerprint},
        {"protocol", m.key.protocol},
        {"workload", workload_json(m.key.workload)},
        {"config", m.key.config}}},
      {"provenance", to_json(m.provenance)},
      {"outcome", to_string(m.outcome)},
      {"message", m.message},
      {"eligible", m.eligible},
      {"is_base", m.is_base},
      {"axes", {m.block_size, m.rows_per_warp, m.vector_width, m.split_count}},
      {"algorithm", m.algorithm},
      {"extra_axes", m.extra_axes},
      {"time_us", {number(m.time_us), number(m.time_lo_us), number(m.time_hi_us)}},
      {"sample_count", m.sample_count},
      {"settled", m.settled},
      {"samples_us", m.samples_us},
      {"bytes", m.bytes},
      {"launches_per_sample", m.launches_per_sample},
      {"bytes_in_rotation", m.bytes_in_rotation},
      {"max_error_ulp", number(m.max_error_ulp)},
      {"facts",
       {m.facts.registers, m.facts.spill_bytes, m.facts.shared_bytes, m.facts.blocks_per_unit, m.facts.binary_hash}},
      {"clocks", m.clocks},
      {"measured_at", m.measured_at}};
}

db::Measurement measurement_from(const json& j) {
  db::Measurement m;
  const json& key = j.at("key");
  m.key.device_model = key.at("model"), m.key.device_limits = key.at("limits"), m.key.toolchain = key.at("toolchain");
  m.key.source_fingerprint = key.at("fingerprint"), m.key.protocol = key.at("protocol");
  m.key.workload = workload_from_json(key.at("workload"));
  m.key.config = key.at("config");
  m.provenance = provenance_from(j.at("provenance"));
  m.outcome = parse_outcome(j.at("outcome"));
  m.message = j.at("message");
  m.eligible = j.at("eligible"), m.is_base = j.at("is_base");
  const json& axes = j.at("axes");
  m.block_size = axes.at(0), m.rows_per_warp = axes.at(1), m.vector_width = axes.at(2), m.split_count = axes.at(3);
  m.algorithm = j.at("algorithm");
  m.extra_axes = j.at("extra_axes");
  const json& time = j.at("time_us");
  m.time_us = number_from(time.at(0)), m.time_lo_us = number_from(time.at(1)), m.time_hi_us = number_from(time.at(2));
  m.sample_count = j.at("sample_count"), m.settled = j.at("settled");
  m.samples_us = j.at("samples_us").get<std::vector<double>>();
  m.bytes = j.at("bytes");
  m.launches_per_sample = j.at("launches_per_sample"), m.bytes_in_rotation = j.at("bytes_in_rotation");
  m.max_error_ulp = number_from(j.at("max_error_ulp"));
  const json& facts = j.at("facts");
  m.facts.registers = facts.at(0), m.facts.spill_bytes = facts.at(1), m.facts.shared_bytes = facts.at(2);
  m.facts.blocks_per_unit = facts.at(3), m.facts.binary_hash = facts.at(4);
  m.clocks = j.at("clocks");
  m.measured_at = j.at("measured_at");
  return m;
}

/// What identifies a device and what a space and a plausible bandwidth depend on.
json to_json(const DeviceInfo& d) {
  return {{"id", d.id},
          {"kind", to_string(d.kind)},
          {"model", d.model},
          {"limits", d.limits},
          {"toolchain", d.toolchain},
          {"uuid", d.uuid},
          {"driver", d.driver},
          {"architecture", d.architecture},
          {"units", d.units},
          {"cache_bytes", d.cache_bytes},
          {"memory_bytes", d.memory_bytes},
          {"peak_gbps", d.peak_gbps},
          {"threads", {d.max_threads_per_block, d.max_threads_per_unit}},
          {"registers_per_unit", d.registers_per_unit},
          {"shared", {d.shared_bytes_per_block, d.shared_bytes_per_unit}},
          {"max_cluster", d.max_cluster}};
}

DeviceInfo device_from(const json& j) {
  DeviceInfo d;
  d.id = j.at("id");
  d.kind = j.at("kind") == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
  d.model = j.at("model"), d.limits = j.at("limits"), d.toolchain = j.at("toolchain");
  d.uuid = j.at("uuid"), d.driver = j.at("driver");
  d.architecture = j.at("architecture"), d.units = j.at("units");
  d.cache_bytes = j.at("cache_bytes"), d.memory_bytes = j.at("memory_bytes"), d.peak_gbps = j.at("peak_gbps");
  d.max_threads_per_block = j.at("threads").at(0), d.max_threads_per_unit = j.at("threads").at(1);
  d.registers_per_unit = j.at("registers_per_unit");
  d.shared_bytes_per_block = j.at("shared").at(0), d.shared_bytes_per_unit = j.at("shared").at(1);
  d.max_cluster = j.at("max_cluster");
  return d;
}

}  // namespace rowtune
