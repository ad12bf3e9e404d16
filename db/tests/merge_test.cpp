#include "db/tests/fixture.hpp"

namespace rowtune::db::test {
namespace {

class MergeTest : public DatabaseTest {
 protected:
  Database db = open();
  std::string other_path = folder.file("other.db");
  Database other = Database::open(other_path, Database::Mode::read_write);
};

TEST_F(MergeTest, BringsEverythingAndDoingItTwiceChangesNothing) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  other.record(base(measured(softmax(8, 8), "block.b256", 10)));
  other.record(measured(softmax(8, 8), "warp.b128", 5));
  auto elsewhere = base(measured(softmax(), "block.b256", 3));
  elsewhere.key.device_model = "Other GPU";
  other.record(elsewhere);
  Decision decision;
  decision.key = key_of(softmax(8, 8), "warp.b128");
  decision.ties = {"block.b256"};
  other.record_decision(decision);
  Accuracy accuracy;
  accuracy.key = key_of(softmax(8, 8), "warp.b128"), accuracy.input = "normal";
  other.record_accuracy({accuracy});
  Baseline baseline;
  baseline.device_model = "Test GPU", baseline.workload = softmax(), baseline.impl = "library";
  baseline.time_us = 20;
  other.record_baselines({baseline});
  StabilityRow row;
  row.experiment = "kappa";
  other.record_stability({"run", "2026-01-01T00:00:00Z", "", "", "", ""}, {row, row});

  const auto counts = db.merge_from(other_path);
  EXPECT_EQ(counts.measurements, 3);
  EXPECT_EQ(counts.measurements_present, 0);
  EXPECT_EQ(counts.decisions, 1);
  EXPECT_EQ(counts.accuracies, 1);
  EXPECT_EQ(counts.baselines, 1);
  EXPECT_EQ(counts.stability_runs, 1);
  EXPECT_EQ(db.measurement_count(), 4);
  EXPECT_EQ(db.best({}).size(), 3u);
  EXPECT_EQ(db.measurements(key_of(softmax(8, 8))).at(1).samples_us.size(), 3u);
  EXPECT_EQ(db.decision(key_of(softmax(8, 8))).value().ties, decision.ties);
  EXPECT_EQ(db.stability().size(), 2u);
  EXPECT_DOUBLE_EQ(db.baselines().at(0).speedup.value(), 2);

  const auto again = db.merge_from(other_path);
  EXPECT_EQ(again.measurements, 0);
  EXPECT_EQ(again.measurements_present, 3);
  EXPECT_EQ(again.decisions + again.accuracies + again.baselines + again.stability_runs, 0);
  EXPECT_EQ(db.measurement_count(), 4);
  EXPECT_EQ(db.stability().size(), 2u);
  EXPECT_TRUE(db.decision(key_of(softmax(8, 8))).has_value()) << "and no decision went stale";
}

TEST_F(MergeTest, WhatIsHereStays) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  other.record(base(measured(softmax(), "block.b256", 7)));
  other.record(measured(softmax(), "warp.b128", 5));
  const auto counts = db.merge_from(other_path);
  EXPECT_EQ(counts.measurements, 1);
  EXPECT_EQ(counts.measurements_present, 1);
  const auto best = db.best({}).at(0);
  EXPECT_EQ(best.config, "warp.b128");
  EXPECT_DOUBLE_EQ(best.base_time_us.value(), 10);
}

TEST_F(MergeTest, ADecisionOnOtherMeasurementsDoesNotComeAlong) {
  db.record(measured(softmax(), "warp.b64", 4));
  other.record(base(measured(softmax(), "block.b256", 10)));
  other.record(measured(softmax(), "warp.b128", 5));
  Decision decision;
  decision.key = key_of(softmax(), "warp.b128");
  other.record_decision(decision);
  EXPECT_EQ(db.merge_from(other_path).decisions, 0);
  EXPECT_EQ(db.best({}).at(0).config, "warp.b64");
}

TEST_F(MergeTest, NewMeasurementsMakeAnOldDecisionStale) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  db.record(measured(softmax(), "warp.b128", 5));
  Decision decision;
  decision.key = key_of(softmax(), "warp.b128");
  db.record_decision(decision);
  other.record(measured(softmax(), "warp.b64", 4));
  db.merge_from(other_path);
  EXPECT_FALSE(db.decision(key_of(softmax())).has_value());
  EXPECT_EQ(db.best({}).at(0).config, "warp.b64");
}

TEST_F(MergeTest, TwoBasesBecomeOne) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  other.record(base(measured(softmax(), "block.b128", 9)));
  EXPECT_EQ(db.merge_from(other_path).measurements, 1);
  EXPECT_EQ(db.best({}).at(0).base_config, "block.b256");
}

TEST_F(MergeTest, ForeignMissingAndTheSameFileAreRefused) {
  EXPECT_THROW(db.merge_from(folder.file("missing.db")), EnvironmentError);
  std::ofstream(folder.file("text.db")) << "some text that is no database at all";
  EXPECT_THROW(db.merge_from(folder.file("text.db")), EnvironmentError);
  EXPECT_THROW(db.merge_from(path), UsageError);
  EXPECT_EQ(db.merge_from(other_path).measurements, 0) << "and the file is still in order";
}

TEST_F(MergeTest, PruningKeepsWinnersAndWhoeverIsNearTheTopSomewhere) {
  for (const int cols : {8, 16}) {
    const auto w = softmax(8, cols);
    db.record(base(measured(w, "block.b256", 100)));
    db.record(measured(w, "warp.b32", cols == 8 ? 10 : 50));
    db.record(measured(w, "warp.b64", cols == 8 ? 50 : 10));
    db.record(measured(w, "warp.b96", 60));
  }
  const auto before = db.best({});
  EXPECT_EQ(db.prune(1), 2) << "warp.b96 is beaten everywhere";
  EXPECT_EQ(db.measurement_count(), 6);
  const auto after = db.best({});
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].config, before[i].config);
    EXPECT_EQ(after[i].base_time_us, before[i].base_time_us);
  }
  EXPECT_TRUE(db.measurements(key_of(softmax(8, 8))).at(0).samples_us.empty());
  EXPECT_EQ(db.prune(1), 0);
}

}  // namespace
}  // namespace rowtune::db::test
