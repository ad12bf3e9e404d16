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
  std::string clocks;  ///< JSON: sm/memory clock in MHz, throttle reasons; empty when unknown
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
  int rank = 0;        ///< 1 = winner
  bool eligible = true, is_base = false, is_tie = false;
  std::string device_model;
};

}  // namespace rowtune::db
