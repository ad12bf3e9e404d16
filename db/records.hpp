#pragma once
// Plain records of what the database holds. Nothing here knows SQL; nothing outside db/ does either.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/words.hpp"

namespace rowtune::db {

/// What makes two measurements the same measurement: every field is part of the unique key, none may be missing.
struct MeasurementKey {
  std::string device_model;
  std::string device_limits;       ///< DeviceInfo::limits
  std::string toolchain;           ///< DeviceInfo::toolchain
  std::string source_fingerprint;  ///< Device::source_fingerprint(op)
  int protocol = measuring_protocol;
  Workload workload;
  std::string config;  ///< its name
};

/// Where and when it was taken: stored beside, never part of the key.
struct Provenance {
  std::string device;                                           ///< `cuda:0`, `cpu`
  std::string uuid, driver, host, rowtune_version, started_at;  ///< ISO 8601, UTC
};

struct Measurement {
  MeasurementKey key;
  Provenance provenance;
  Outcome outcome = Outcome::ok;
  std::string message;   ///< the first error's text when the outcome is not ok
  bool eligible = true;  ///< unsafe forms are not
  bool is_base = false;
  int block_size = 0, rows_per_warp = 0, vector_width = 0, split_count = 0;
  std::string algorithm;
  std::string extra_axes;  ///< JSON object of further axes by letter

  std::optional<double> time_us, time_lo_us,
      time_hi_us;  ///< median and its 95 % interval, per launch; absent unless ok
  int sample_count = 0;
  bool settled = false;            ///< false: stopped by a limit before the estimate settled
  std::vector<double> samples_us;  ///< as measured, in order
  std::int64_t bytes = 0;          ///< bytes_moved(workload)
  std::int64_t launches_per_sample = 0, bytes_in_rotation = 0;
  std::optional<double> max_error_ulp;
  KernelFacts facts;
  std::string clocks;       ///< JSON: sm/memory clock in MHz, throttle reasons; empty when unknown
  std::string measured_at;  ///< ISO 8601, UTC; the database fills it in when it is empty
};

/// What the tuner found out about a sweep by paired finals: stronger than what medians and intervals say.
struct Decision {
  MeasurementKey key;             ///< `config` is the chosen one
  std::vector<std::string> ties;  ///< configs that cannot be told from the chosen one (which may be among them)
  double confidence = 0;          ///< such as 0.95
  double margin = 0;              ///< relative difference below which two configs count as tied, such as 0.01
  std::string method;             ///< one line for people: rounds, pairs, correction
  std::string decided_at;         ///< filled in when empty
};

/// Another library's time for a workload.
struct Baseline {
  std::string device_model;
  Workload workload;
  std::string impl, version;  ///< `torch.nn.functional.softmax`, `2.6.0`
  double time_us = 0;
  std::optional<double> time_lo_us, time_hi_us;
  std::string method;       ///< how it was measured
  std::string source;       ///< the file it came from
  std::string imported_at;  ///< filled in when empty
};

/// A row of the view `baselines`: the import beside rowtune's own best, where there is one.
struct BaselineRow {
  Baseline baseline;
  std::optional<double> gbps;
  std::optional<std::string> rowtune_config;
  std::optional<double> rowtune_time_us, speedup;  ///< baseline time / rowtune time
};

/// How wrong a config is on one input of the study, beyond the check before tuning.
struct Accuracy {
  MeasurementKey key;  ///< with config
  std::string input;   ///< `normal`, `spikes`, `kappa=1e6`...
  std::int64_t elements = 0;
  std::optional<double> max_error_ulp, mean_error_ulp, max_rel_error;
  std::int64_t nan_count = 0, inf_count = 0, negative_count = 0, false_zero_count = 0;
  std::string measured_at;  ///< filled in when empty
};

/// A row of the view `energy`: joules of the whole device per launch, beside the time of the same config.
struct EnergyRow {
  std::string device_model, device_limits;
  Workload workload;
  std::string config;
  double joules = 0, time_us = 0;
  bool is_base = false;
};

/// A row of the view `accuracy`: beside the time of the same config.
struct AccuracyRow {
  Accuracy accuracy;
  std::optional<double> time_us;
  bool eligible = true;
};

struct StabilityRun {
  std::string name;  ///< unique; recording the same name again replaces the run
  std::string started_at, host, rowtune_version;
  std::string reference;  ///< what the errors are against
  std::string settings;   ///< the options of the run, as text
};

/// A line of `stability.csv`. Absent numbers are NULL; NaN is stored as NULL too (the counts tell), inf as inf.
struct StabilityRow {
  std::string experiment, case_name, op, method, order, dtype;
  std::int64_t n = 0;
  std::optional<double> kappa, rel_error, ulp_error, lre, lre_ceiling, bound;
  std::string bound_kind;  ///< `proven`, `heuristic` or empty
  std::int64_t nan_count = 0, inf_count = 0, negative_count = 0, false_zero_count = 0;
  std::string device_model, config;  ///< of a kernel's output; empty for a method on the host
  std::string note;
  std::string run, started_at;  ///< filled in on reading
  bool latest = true;           ///< filled in on reading: the newest run that did this experiment
};

/// One row of the view `best` (and, for every config, of `leaderboard`): DESIGN's keys.
struct BestRow {
  std::string device, op, dtype;
  std::int64_t rows = 0, cols = 0, ld = 0, off = 0;
  std::string regime, options, config, algorithm;
  int block_size = 0, rows_per_warp = 0, vector_width = 0, split_count = 0;
  std::optional<double> time_us, time_lo_us, time_hi_us, gbps, ceiling_fraction;
  std::string base_config;
  std::optional<double> base_time_us, gain_over_base;  ///< base time / time
  int ties = 0;                                        ///< configs, besides this one, that cannot be told from it
  std::optional<double> max_error_ulp;
  std::string status;  ///< outcome by name
  int rank = 0;        ///< 1 = winner; 0 = not ranked: failed or ineligible
  bool eligible = true, is_base = false, is_tie = false;
  std::string device_model, device_limits, toolchain, source_fingerprint;
  int protocol = 0;
  bool decided = false;  ///< by the tuner's finals; false: by medians and intervals alone
  bool settled = false;
  int sample_count = 0;
  int registers = 0, spill_bytes = 0, shared_bytes = 0, blocks_per_unit = 0;
  std::string extra_axes;
  std::int64_t bytes = 0;
  std::optional<double> ceiling_time_us;  ///< time of the ceiling's copy, scaled to this workload's bytes
  std::string message;                    ///< why it failed
  std::string measured_at;

  /// The workload this row belongs to.
  Workload workload() const;
};

/// A row of the view `failures`.
struct Failure {
  std::string device, op, dtype;
  std::int64_t rows = 0, cols = 0;
  std::string regime, config, status, message;
  bool is_base = false, eligible = true;
  std::int64_t ld = 0, off = 0;
  std::string options, algorithm;
  std::optional<double> max_error_ulp;
  std::string measured_at, device_model, device_limits;
};

/// A row of the view `coverage`: what was measured of one workload.
struct Coverage {
  std::string device, op, dtype;
  std::int64_t rows = 0, cols = 0;
  std::string regime;
  std::int64_t measured = 0;
  std::optional<std::int64_t> space_size;
  std::optional<double> fraction;
  std::int64_t ok = 0, failed = 0, ineligible = 0, unsettled = 0;
  bool decided = false, has_ceiling = false;
  std::int64_t older_results = 0;  ///< of the same workload under another toolchain, source or protocol
  std::string first_measured_at, last_measured_at;
  std::int64_t units = 0;  ///< different cards of this model
  std::int64_t ld = 0, off = 0;
  std::string options, toolchain, source_fingerprint;
  int protocol = 0;
  std::string device_model, device_limits;
};

/// A workload of a device.
struct DeviceWorkload {
  std::string device_model, device_limits;
  Workload workload;
  auto operator<=>(const DeviceWorkload&) const = default;
};

/// What a merge brought in; what was there already is not touched.
struct MergeCounts {
  std::int64_t measurements = 0, measurements_present = 0;
  std::int64_t decisions = 0, accuracies = 0, baselines = 0, stability_runs = 0, energies = 0;
};

}  // namespace rowtune::db
