#pragma once
// Measurements that differ from a plain one in what a test is about, and a file with a little of everything.

#include <string>

#include "db/database.hpp"

namespace rowtune::db::test {

inline Workload softmax(std::int64_t rows = 64, std::int64_t cols = 1000) {
  return Workload::of(Operation::softmax, Dtype::bf16, Shape::of(rows, cols));
}

inline MeasurementKey key_of(const Workload& workload, const std::string& config = {}) {
  return {"Test GPU", "units=1", "NVRTC 13.0", "source-a", 1, workload, config};
}

/// An ok measurement with an interval of 1 % to either side.
inline Measurement measured(const Workload& workload, const std::string& config, double time_us) {
  Measurement m;
  m.key = key_of(workload, config);
  m.provenance = {"cuda:0", "GPU-1", "580.1", "host", "0.1.0", "2026-01-01T00:00:00Z"};
  m.measured_at = "2026-01-01T00:00:01.000Z";
  m.algorithm = config.substr(0, config.find('.'));
  m.block_size = 128, m.rows_per_warp = 1, m.vector_width = 8, m.split_count = 1;
  m.time_us = time_us, m.time_lo_us = 0.99 * time_us, m.time_hi_us = 1.01 * time_us;
  m.sample_count = 3, m.settled = true;
  m.samples_us = {0.99 * time_us, time_us, 1.01 * time_us};
  m.bytes = bytes_moved(workload);
  m.max_error_ulp = 0.5;
  return m;
}

inline Measurement failed(const Workload& workload, const std::string& config, Outcome outcome,
                          const std::string& message) {
  auto m = measured(workload, config, 1);
  m.outcome = outcome;
  m.message = message;
  m.time_us = m.time_lo_us = m.time_hi_us = m.max_error_ulp = std::nullopt;
  return m;
}

inline Measurement base(Measurement m) {
  m.is_base = true;
  return m;
}

inline Measurement ineligible(Measurement m) {
  m.eligible = false;
  return m;
}

/// Fills a new file: the fixture of each schema version, and what the fuzzer damages.
inline void make_sound_file(const std::string& path) {
  auto db = Database::open(path, Database::Mode::read_write);
  db.record(base(measured(Workload::of(Operation::copy, Dtype::bf16, Shape::of(64, 1000)), "block.b256.r1.v8.s1", 4)));
  db.begin_sweep(key_of(softmax()), 9);
  db.record(base(measured(softmax(), "block.b256.r1.v8.s1", 10)));
  db.record(measured(softmax(), "warp.b128.r1.v8.s1", 5));
  db.record(ineligible(measured(softmax(), "unsafe.b128.r1.v8.s1", 4)));
  db.record(failed(softmax(), "warp.b1024.r1.v8.s1", Outcome::launch_error, "too many registers"));
  Decision decision;
  decision.key = key_of(softmax(), "warp.b128.r1.v8.s1");
  decision.confidence = 0.95, decision.margin = 0.01, decision.method = "paired finals";
  decision.decided_at = "2026-01-01T00:00:02.000Z";
  db.record_decision(decision);
  Accuracy accuracy;
  accuracy.key = decision.key, accuracy.input = "normal", accuracy.elements = 64000, accuracy.max_error_ulp = 0.5;
  accuracy.measured_at = "2026-01-01T00:00:03.000Z";
  db.record_accuracy({accuracy});
  Baseline baseline;
  baseline.device_model = "Test GPU", baseline.workload = softmax(), baseline.impl = "library", baseline.version = "1";
  baseline.time_us = 20, baseline.imported_at = "2026-01-01T00:00:04.000Z";
  db.record_baselines({baseline});
  StabilityRow row;
  row.experiment = "kappa", row.op = "variance", row.method = "welford", row.dtype = "f32";
  db.record_stability({"run", "2026-01-01T00:00:00Z", "host", "0.1.0", "long double", "quick"}, {row});
}

}  // namespace rowtune::db::test
