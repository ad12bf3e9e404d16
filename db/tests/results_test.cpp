// What is stored comes back: measurements, stability, accuracy, baselines; keys; failures and coverage.

#include <cmath>
#include <limits>

#include "db/tests/fixture.hpp"

namespace rowtune::db::test {
namespace {

class ResultsTest : public DatabaseTest {
 protected:
  Database db = open();
};

TEST_F(ResultsTest, MeasurementComesBackAsItWas) {
  auto m = base(measured(softmax(), "warp.b128.r1.v8.s1.k2", 5));
  m.extra_axes = R"({"k":2})";
  m.samples_us = {5.125, 4.9999999999999991, 5.25};
  m.launches_per_sample = 40, m.bytes_in_rotation = 1 << 30;
  m.facts = {32, 8, 4096, 16, "abc"};
  m.clocks = R"({"sm":1980})";
  m.settled = false;
  m.message = "a 'quoted' text; DROP TABLE measurement; \n\xc3\xbc";
  ASSERT_TRUE(db.record(m));
  const auto all = db.measurements(key_of(softmax()));
  ASSERT_EQ(all.size(), 1u);
  const auto& r = all[0];
  EXPECT_EQ(r.key.config, m.key.config);
  EXPECT_EQ(r.samples_us, m.samples_us) << "to the last bit";
  EXPECT_EQ(r.extra_axes, m.extra_axes);
  EXPECT_EQ(r.launches_per_sample, 40);
  EXPECT_EQ(r.bytes_in_rotation, 1 << 30);
  EXPECT_EQ(r.facts.registers, 32);
  EXPECT_EQ(r.facts.spill_bytes, 8);
  EXPECT_EQ(r.facts.shared_bytes, 4096);
  EXPECT_EQ(r.facts.blocks_per_unit, 16);
  EXPECT_EQ(r.facts.binary_hash, "abc");
  EXPECT_EQ(r.clocks, m.clocks);
  EXPECT_FALSE(r.settled);
  EXPECT_TRUE(r.is_base);
  EXPECT_EQ(r.message, m.message);
  EXPECT_EQ(r.provenance.uuid, "GPU-1");
  EXPECT_EQ(r.measured_at, m.measured_at);
  EXPECT_EQ(r.bytes, 256000);
  EXPECT_DOUBLE_EQ(r.time_lo_us.value(), m.time_lo_us.value());
}

TEST_F(ResultsTest, TimeOfRecordingIsFilledIn) {
  auto m = measured(softmax(), "warp.b128", 5);
  m.measured_at.clear();
  db.record(m);
  const auto at = db.measurements(key_of(softmax())).at(0).measured_at;
  ASSERT_EQ(at.size(), 24u) << at;
  EXPECT_EQ(at[10], 'T');
  EXPECT_EQ(at[23], 'Z');
  EXPECT_GT(at, "2026-01-01");
}

TEST_F(ResultsTest, TheSameKeyIsStoredOnce) {
  EXPECT_TRUE(db.record(measured(softmax(), "warp.b128", 5)));
  EXPECT_FALSE(db.record(measured(softmax(), "warp.b128", 7)));
  EXPECT_EQ(db.measurement_count(), 1);
  EXPECT_DOUBLE_EQ(db.measurements(key_of(softmax())).at(0).time_us.value(), 5);
  EXPECT_TRUE(db.record(measured(softmax(), "warp.b128", 7), true));
  EXPECT_EQ(db.measurement_count(), 1);
  EXPECT_DOUBLE_EQ(db.measurements(key_of(softmax())).at(0).time_us.value(), 7);
}

TEST_F(ResultsTest, EveryPartOfTheKeyCounts) {
  const auto plain = measured(softmax(), "warp.b128", 5);
  std::vector<Measurement> all(14, plain);
  all[1].key.device_model = "Other GPU";
  all[2].key.device_limits = "units=2";
  all[3].key.toolchain = "NVRTC 13.1";
  all[4].key.source_fingerprint = "source-b";
  all[5].key.protocol = 2;
  all[6].key.workload.op = Operation::log_softmax;
  all[7].key.workload.dtype = Dtype::f16;
  all[8].key.workload.shape = Shape::of(65, 1000);
  all[9].key.workload.shape = Shape::of(64, 1001);
  all[10].key.workload.shape.ld = 1024;
  all[11].key.workload.shape.off = 1;
  all[12].key.workload.regime = Regime::warm;
  all[13].key.workload.options.in_place = true;
  all.push_back(plain);
  all[14].key.config = "warp.b64";
  for (const auto& m : all) EXPECT_TRUE(db.record(m));
  EXPECT_EQ(db.measurement_count(), 15);
  for (const auto& m : all) EXPECT_FALSE(db.record(m));
  EXPECT_EQ(db.recorded_configs(key_of(softmax())), (std::vector<std::string>{"warp.b128", "warp.b64"}));
  EXPECT_EQ(db.recorded_configs(all[3].key), std::vector<std::string>{"warp.b128"});
  auto unknown = key_of(softmax());
  unknown.protocol = 3;
  EXPECT_TRUE(db.recorded_configs(unknown).empty());
}

TEST_F(ResultsTest, AnotherUnitOfTheModelPools) {
  db.record(measured(softmax(), "warp.b128", 5));
  auto other = measured(softmax(), "warp.b128", 6);
  other.provenance.uuid = "GPU-2";
  EXPECT_FALSE(db.record(other));
  EXPECT_EQ(db.recorded_configs(key_of(softmax()), "GPU-2").size(), 0u);
}

TEST_F(ResultsTest, AHalfFilledKeyOrAnOkWithoutTimeIsAnErrorOfTheCaller) {
  auto m = measured(softmax(), "", 5);
  EXPECT_THROW(db.record(m), std::invalid_argument);
  m = measured(softmax(), "warp.b128", 5);
  m.key.source_fingerprint.clear();
  EXPECT_THROW(db.record(m), std::invalid_argument);
  for (const auto time : {std::optional<double>(), std::optional(std::numeric_limits<double>::quiet_NaN()),
                          std::optional(std::numeric_limits<double>::infinity()), std::optional(-1.0)}) {
    m = measured(softmax(), "warp.b128", 5);
    m.time_us = time;
    EXPECT_THROW(db.record(m), std::invalid_argument);
  }
  EXPECT_EQ(db.measurement_count(), 0);
}

TEST_F(ResultsTest, EveryOutcomeIsStoredByNameWithoutATime) {
  int i = 0;
  for (const auto outcome : {Outcome::compile_error, Outcome::launch_error, Outcome::wrong_result, Outcome::timeout,
                             Outcome::crash, Outcome::out_of_memory, Outcome::implausible}) {
    ++i;
    db.record(failed(softmax(), "warp.b" + std::to_string(i), outcome, "because " + std::to_string(i)));
  }
  auto wrong = measured(softmax(), "warp.nan", 5);
  wrong.outcome = Outcome::wrong_result;
  wrong.max_error_ulp = std::numeric_limits<double>::quiet_NaN();
  db.record(wrong);
  const auto failures = db.failures();
  ASSERT_EQ(failures.size(), 8u);
  EXPECT_EQ(failures[0].status, "compile_error");
  EXPECT_EQ(failures[0].message, "because 1");
  EXPECT_EQ(failures[6].status, "implausible");
  EXPECT_FALSE(failures[7].max_error_ulp.has_value());
  for (const auto& m : db.measurements(key_of(softmax()))) EXPECT_FALSE(m.time_us.has_value()) << m.key.config;
  EXPECT_EQ(db.measurements(key_of(softmax())).at(7).samples_us.size(), 3u) << "what was sampled is kept";
}

TEST_F(ResultsTest, CoverageCountsAndKnowsTheSpace) {
  db.begin_sweep(key_of(softmax()), 8);
  db.record(base(measured(softmax(), "block.b256", 5)));
  db.record(ineligible(measured(softmax(), "unsafe.b128", 5)));
  auto loose = measured(softmax(), "warp.b64", 5);
  loose.settled = false;
  db.record(loose);
  db.record(failed(softmax(), "warp.b32", Outcome::timeout, "too slow"));
  auto coverage = db.coverage();
  ASSERT_EQ(coverage.size(), 1u);
  const auto c = coverage[0];
  EXPECT_EQ(c.measured, 4);
  EXPECT_EQ(c.space_size.value(), 8);
  EXPECT_DOUBLE_EQ(c.fraction.value(), 0.5);
  EXPECT_EQ(c.ok, 3);
  EXPECT_EQ(c.failed, 1);
  EXPECT_EQ(c.ineligible, 1);
  EXPECT_EQ(c.unsettled, 1);
  EXPECT_FALSE(c.decided);
  EXPECT_FALSE(c.has_ceiling);
  EXPECT_EQ(c.units, 1);
  db.record(base(measured(Workload::of(Operation::copy, Dtype::bf16, Shape::of(64, 1000)), "block.b256", 4)));
  coverage = db.coverage();
  ASSERT_EQ(coverage.size(), 2u);
  EXPECT_FALSE(coverage[0].space_size.has_value());
  EXPECT_TRUE(coverage[1].has_ceiling);
  const auto unswept = db.unswept();
  ASSERT_EQ(unswept.size(), 1u);
  EXPECT_EQ(unswept.begin()->workload.op, Operation::copy);
  BestQuery query;
  query.op = Operation::softmax;
  EXPECT_TRUE(db.unswept(query).empty());
}

TEST_F(ResultsTest, TheBaseNamedLastIsTheBase) {
  db.record(base(measured(softmax(), "block.b256", 5)));
  db.record(base(measured(softmax(), "block.b128", 6)));
  EXPECT_EQ(db.best({}).at(0).base_config, "block.b128");
  db.begin_sweep(key_of(softmax()), {}, "block.b256");
  EXPECT_EQ(db.best({}).at(0).base_config, "block.b256");
  db.begin_sweep(key_of(softmax()), {}, "not.measured");
  EXPECT_EQ(db.best({}).at(0).base_config, "block.b256");
}

TEST_F(ResultsTest, StabilityRowsComeBackAndARunIsReplacedAsAWhole) {
  StabilityRun run{"first", "2026-01-01T00:00:00Z", "host", "0.1.0", "long double, 64 bits", "quick"};
  StabilityRow row;
  row.experiment = "kappa", row.case_name = "1e8, a", row.op = "variance", row.method = "one_pass";
  row.order = "sequential", row.dtype = "f32", row.n = 4096;
  row.kappa = 1e8, row.rel_error = std::numeric_limits<double>::infinity();
  row.ulp_error = std::numeric_limits<double>::quiet_NaN();
  row.bound_kind = "proven", row.negative_count = 3;
  auto second = row;
  second.method = "welford", second.rel_error = 1e-7, second.config = "warp.b128", second.device_model = "Test GPU";
  db.record_stability(run, {row, second});
  auto rows = db.stability();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].case_name, "1e8, a");
  EXPECT_EQ(rows[0].order, "sequential");
  EXPECT_TRUE(std::isinf(rows[0].rel_error.value()));
  EXPECT_FALSE(rows[0].ulp_error.has_value());
  EXPECT_FALSE(rows[0].bound.has_value());
  EXPECT_EQ(rows[0].negative_count, 3);
  EXPECT_EQ(rows[0].run, "first");
  EXPECT_EQ(rows[1].config, "warp.b128");
  db.record_stability(run, {row});
  EXPECT_EQ(db.stability().size(), 1u);
  run.name = "second", run.started_at = "2026-01-02T00:00:00Z";
  db.record_stability(run, {second, second});
  EXPECT_EQ(db.stability().size(), 2u) << "of the newest run that did the experiment";
  EXPECT_EQ(db.stability(false).size(), 3u);
}

TEST_F(ResultsTest, AccuracyStandsBesideTheTimeOfItsConfig) {
  db.record(base(measured(softmax(), "block.b256", 5)));
  Accuracy a;
  a.key = key_of(softmax(), "block.b256"), a.input = "spikes", a.elements = 64000;
  a.max_error_ulp = 1.5, a.mean_error_ulp = 0.25;
  a.inf_count = 2;
  db.record_accuracy({a});
  a.max_error_ulp = 2.5;
  db.record_accuracy({a});
  const auto rows = db.accuracy();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows[0].accuracy.max_error_ulp.value(), 2.5);
  EXPECT_FALSE(rows[0].accuracy.max_rel_error.has_value());
  EXPECT_EQ(rows[0].accuracy.inf_count, 2);
  EXPECT_EQ(rows[0].accuracy.key.workload, softmax());
  EXPECT_DOUBLE_EQ(rows[0].time_us.value(), 5);
  auto stale = a;
  stale.key.source_fingerprint = "source-old";
  db.record_accuracy({stale});
  EXPECT_EQ(db.accuracy().size(), 1u) << "errors of another source do not show";
  EXPECT_EQ(db.best({}).at(0).source_fingerprint, "source-a") << "nor do they make a sweep current";
}

TEST_F(ResultsTest, EnergyStandsBesideTheTimeAndOutlivesAFinal) {
  db.record(base(measured(softmax(), "block.b256", 5)));
  db.record(ineligible(measured(softmax(), "unsafe.b256", 4)));
  db.record_energy(key_of(softmax(), "block.b256"), 0.5);
  db.record_energy(key_of(softmax(), "block.b256"), 0.002);
  db.record_energy(key_of(softmax(), "unsafe.b256"), 0.001);
  db.record(base(measured(softmax(), "block.b256", 6)), true);
  const auto rows = db.energy();
  ASSERT_EQ(rows.size(), 1u) << "what may not be chosen is left out";
  EXPECT_EQ(rows[0].config, "block.b256");
  EXPECT_EQ(rows[0].workload, softmax());
  EXPECT_DOUBLE_EQ(rows[0].joules, 0.002);
  EXPECT_DOUBLE_EQ(rows[0].time_us, 6);
  EXPECT_TRUE(rows[0].is_base);
}

TEST_F(ResultsTest, BaselinesStandBesideOurBest) {
  Baseline b;
  b.device_model = "Test GPU", b.workload = softmax(), b.impl = "library", b.version = "1.0", b.method = "graphs";
  b.time_us = 10, b.source = "a.csv";
  auto unknown = b;
  unknown.workload = softmax(1, 2);
  db.record_baselines({b, unknown});
  db.record(base(measured(softmax(), "block.b256", 5)));
  b.time_us = 20;
  db.record_baselines({b});
  const auto rows = db.baselines();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].rowtune_config.has_value());
  EXPECT_EQ(rows[1].rowtune_config.value(), "block.b256");
  EXPECT_DOUBLE_EQ(rows[1].speedup.value(), 4);
  EXPECT_EQ(rows[1].baseline.workload, softmax());
}

}  // namespace
}  // namespace rowtune::db::test
