// Writes the file that tests/fixtures keeps of each schema version: run once, when a version is new.
// usage: db_make_fixture FILE

#include "db/tests/fixture.hpp"

int main(int argc, char** argv) {
  using namespace rowtune;
  using namespace rowtune::db;
  using namespace rowtune::db::test;
  if (argc != 2) return 2;
  auto db = Database::open(argv[1], Database::Mode::read_write);
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
