// The meaning of the views `best` and `leaderboard`, through the records that the database hands out.

#include <algorithm>
#include <ctime>

#include "db/tests/fixture.hpp"

namespace rowtune::db::test {
namespace {

class BestTest : public DatabaseTest {
 protected:
  Database db = open();
  BestRow only_best(const BestQuery& query = {}) {
    const auto rows = db.best(query);
    EXPECT_EQ(rows.size(), 1u);
    return rows.empty() ? BestRow{} : rows[0];
  }
};

TEST_F(BestTest, FastestWinsWhenIntervalsAreApart) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  db.record(measured(softmax(), "warp.b128", 5));
  db.record(measured(softmax(), "warp.b64", 7));
  const auto row = only_best();
  EXPECT_EQ(row.config, "warp.b128");
  EXPECT_EQ(row.ties, 0);
  EXPECT_EQ(row.base_config, "block.b256");
  EXPECT_DOUBLE_EQ(row.base_time_us.value(), 10);
  EXPECT_DOUBLE_EQ(row.gain_over_base.value(), 2);
  EXPECT_EQ(row.rank, 1);
  EXPECT_EQ(row.status, "ok");
  EXPECT_EQ(row.device, "cuda:0");
  EXPECT_EQ(row.device_model, "Test GPU");
  // 64 x 1000 bf16 read once and written once: 256,000 bytes in 5 us.
  EXPECT_EQ(row.bytes, 256000);
  EXPECT_DOUBLE_EQ(row.gbps.value(), 51.2);
}

TEST_F(BestTest, BaseWinsWhenItTiesWithTheFastest) {
  db.record(base(measured(softmax(), "block.b256", 5.05)));
  db.record(measured(softmax(), "warp.b128", 5));
  db.record(measured(softmax(), "warp.b64", 5.06));
  db.record(measured(softmax(), "warp.b32", 9));
  const auto row = only_best();
  EXPECT_EQ(row.config, "block.b256");
  EXPECT_EQ(row.ties, 2);
  EXPECT_DOUBLE_EQ(row.gain_over_base.value(), 1);
}

TEST_F(BestTest, WithoutTheBaseAmongTheTiesTheFastestWins) {
  db.record(base(measured(softmax(), "block.b256", 9)));
  db.record(measured(softmax(), "warp.b128", 5));
  db.record(measured(softmax(), "warp.b64", 5.05));
  const auto row = only_best();
  EXPECT_EQ(row.config, "warp.b128");
  EXPECT_EQ(row.ties, 1);
}

TEST_F(BestTest, IneligibleConfigsAreShownAndNeverBest) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  db.record(ineligible(measured(softmax(), "unsafe.b128", 1)));
  EXPECT_EQ(only_best().config, "block.b256");
  EXPECT_EQ(only_best().ties, 0);
  const auto board = db.leaderboard({});
  ASSERT_EQ(board.size(), 2u);
  EXPECT_EQ(board[1].config, "unsafe.b128");
  EXPECT_EQ(board[1].rank, 0);
  EXPECT_FALSE(board[1].eligible);
  EXPECT_FALSE(board[1].is_tie);
  EXPECT_DOUBLE_EQ(board[1].time_us.value(), 1);
}

TEST_F(BestTest, FailedConfigsHaveNoTimeAndNoRank) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  auto wrong = measured(softmax(), "warp.b128", 1);  // a time that came before the check said no
  wrong.outcome = Outcome::wrong_result;
  wrong.message = "3 of 64000 elements";
  db.record(wrong);
  EXPECT_EQ(only_best().config, "block.b256");
  const auto board = db.leaderboard({});
  ASSERT_EQ(board.size(), 2u);
  EXPECT_EQ(board[1].status, "wrong_result");
  EXPECT_EQ(board[1].rank, 0);
  EXPECT_FALSE(board[1].time_us.has_value());
  EXPECT_FALSE(board[1].gbps.has_value());
  EXPECT_EQ(board[1].message, "3 of 64000 elements");
}

TEST_F(BestTest, FailedBaseLeavesTheGainUnknown) {
  db.record(base(failed(softmax(), "block.b256", Outcome::launch_error, "too many registers")));
  db.record(measured(softmax(), "warp.b128", 5));
  const auto row = only_best();
  EXPECT_EQ(row.config, "warp.b128");
  EXPECT_EQ(row.base_config, "block.b256");
  EXPECT_FALSE(row.base_time_us.has_value());
  EXPECT_FALSE(row.gain_over_base.has_value());
}

TEST_F(BestTest, NothingRightMeansNoRow) {
  db.record(base(failed(softmax(), "block.b256", Outcome::crash, "illegal access")));
  EXPECT_TRUE(db.best({}).empty());
  EXPECT_EQ(db.leaderboard({}).size(), 1u);
}

TEST_F(BestTest, MissingIntervalsAreTakenAsPoints) {
  auto plain = base(measured(softmax(), "block.b256", 5));
  plain.time_lo_us = plain.time_hi_us = std::nullopt;
  db.record(plain);
  auto other = measured(softmax(), "warp.b128", 4.999);
  other.time_lo_us = other.time_hi_us = std::nullopt;
  db.record(other);
  EXPECT_EQ(only_best().config, "warp.b128");
  EXPECT_FALSE(only_best().time_lo_us.has_value());
}

TEST_F(BestTest, RanksGoOnAfterTheWinner) {
  db.record(base(measured(softmax(), "block.b256", 5.05)));
  db.record(measured(softmax(), "warp.b128", 5));
  db.record(measured(softmax(), "warp.b64", 7));
  BestQuery query;
  query.top = 3;
  const auto rows = db.best(query);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].config, "block.b256");
  EXPECT_EQ(rows[1].config, "warp.b128");
  EXPECT_EQ(rows[2].config, "warp.b64");
  EXPECT_TRUE(rows[1].is_tie);
  EXPECT_FALSE(rows[2].is_tie);
}

TEST_F(BestTest, ErrorLimitChoosesAmongThosePassing) {
  auto fast = measured(softmax(), "warp.b128", 5);
  fast.max_error_ulp = 0.9;
  db.record(fast);
  auto unknown = measured(softmax(), "warp.b64", 4);
  unknown.max_error_ulp = std::nullopt;  // unknown is not "at most"
  db.record(unknown);
  auto accurate = base(measured(softmax(), "block.b256", 10));
  accurate.max_error_ulp = 0.5;
  db.record(accurate);
  EXPECT_EQ(only_best().config, "warp.b64");
  BestQuery query;
  query.max_error_ulp = 0.9;
  EXPECT_EQ(only_best(query).config, "warp.b128");
  query.max_error_ulp = 0.5;
  EXPECT_EQ(only_best(query).config, "block.b256");
  query.max_error_ulp = 0.4;
  EXPECT_TRUE(db.best(query).empty());
}

TEST_F(BestTest, SameUnitLeavesOtherCardsOut) {
  auto other = measured(softmax(), "warp.b128", 5);
  other.provenance.uuid = "GPU-2";
  db.record(other);
  db.record(base(measured(softmax(), "block.b256", 10)));
  EXPECT_EQ(only_best().config, "warp.b128");
  BestQuery query;
  query.uuid = "GPU-1";
  EXPECT_EQ(only_best(query).config, "block.b256");
  EXPECT_EQ(db.recorded_configs(key_of(softmax())).size(), 2u);
  EXPECT_EQ(db.recorded_configs(key_of(softmax()), "GPU-1"), std::vector<std::string>{"block.b256"});
}

TEST_F(BestTest, CeilingIsTheCopyOfTheSameBytes) {
  const auto copy = Workload::of(Operation::copy, Dtype::bf16, Shape::of(64, 1000));
  db.record(base(measured(copy, "block.b256", 8)));
  db.record(measured(copy, "warp.b128", 4));
  db.record(base(measured(softmax(), "block.b256", 5)));
  BestQuery query;
  query.op = Operation::softmax;
  EXPECT_DOUBLE_EQ(only_best(query).ceiling_fraction.value(), 0.8);
  query.op = Operation::copy;
  EXPECT_DOUBLE_EQ(only_best(query).ceiling_fraction.value(), 1.0);
}

TEST_F(BestTest, CeilingScalesWithTheBytesOfWeightsAndInputs) {
  const auto fused = Workload::of(Operation::fused_add_rmsnorm, Dtype::f32, Shape::of(10, 100));
  db.record(base(measured(Workload::of(Operation::copy, Dtype::f32, Shape::of(20, 100)), "block.b256", 8)));
  db.record(base(measured(fused, "block.b256", 10)));
  BestQuery query;
  query.op = Operation::fused_add_rmsnorm;
  // Copy of 20 x 100: 4,000 elements moved. Fused 10 x 100: 2 in, 2 out and one weight row: 4,100.
  EXPECT_DOUBLE_EQ(only_best(query).ceiling_fraction.value(), 8 * (4100.0 / 4000.0) / 10);
}

TEST_F(BestTest, CeilingOfAStridedShapeIsTheContiguousCopy) {
  auto strided = softmax();
  strided.shape.ld = 1024, strided.shape.off = 1;
  db.record(base(measured(strided, "block.b256", 10)));
  auto copy = Workload::of(Operation::copy, Dtype::bf16, strided.shape);
  db.record(base(measured(copy, "block.b256", 1)));
  BestQuery query;
  query.op = Operation::softmax;
  EXPECT_FALSE(only_best(query).ceiling_fraction.has_value()) << "a strided copy is no ceiling";
  copy.shape = Shape::of(64, 1000);
  db.record(base(measured(copy, "block.b256", 5)));
  EXPECT_DOUBLE_EQ(only_best(query).ceiling_fraction.value(), 0.5);
}

TEST_F(BestTest, CeilingOfAnotherDeviceRegimeOrDtypeDoesNotCount) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  const auto copy = Workload::of(Operation::copy, Dtype::bf16, Shape::of(64, 1000));
  auto other_device = measured(copy, "block.b256", 1);
  other_device.key.device_model = "Other GPU";
  db.record(other_device);
  auto warm = copy;
  warm.regime = Regime::warm;
  db.record(measured(warm, "block.b256", 1));
  auto f16 = copy;
  f16.dtype = Dtype::f16;
  db.record(measured(f16, "block.b256", 1));
  BestQuery query;
  query.op = Operation::softmax;
  EXPECT_FALSE(only_best(query).ceiling_fraction.has_value());
}

TEST_F(BestTest, ChangedKernelNeverCompetesWithStaleRows) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  db.record(measured(softmax(), "warp.b128", 1));
  auto changed = base(measured(softmax(), "block.b256", 9));
  changed.key.source_fingerprint = "source-b";
  changed.measured_at = "2026-01-02T00:00:00.000Z";
  db.record(changed);
  EXPECT_EQ(only_best().config, "block.b256");
  EXPECT_DOUBLE_EQ(only_best().time_us.value(), 9);
  EXPECT_EQ(only_best().source_fingerprint, "source-b");
  EXPECT_EQ(db.leaderboard({}).size(), 1u);
  EXPECT_EQ(db.coverage().at(0).older_results, 2);
  db.begin_sweep(key_of(softmax()));  // back to the old source: nothing to measure, and current again
  EXPECT_EQ(only_best().config, "warp.b128");
}

TEST_F(BestTest, SweepThatMeasuredNothingYetHidesNothing) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  auto key = key_of(softmax());
  key.source_fingerprint = "source-b";
  db.begin_sweep(key, 12);
  EXPECT_EQ(only_best().source_fingerprint, "source-a");
}

TEST_F(BestTest, OtherModelsAndLimitsAreOtherDevices) {
  db.record(base(measured(softmax(), "block.b256", 10)));
  auto slice = base(measured(softmax(), "block.b256", 20));
  slice.key.device_limits = "units=half";
  db.record(slice);
  auto other = base(measured(softmax(), "block.b256", 30));
  other.key.device_model = "Other GPU";
  db.record(other);
  EXPECT_EQ(db.best({}).size(), 3u);
  BestQuery query;
  query.device_model = "Other GPU";
  EXPECT_DOUBLE_EQ(only_best(query).time_us.value(), 30);
  query.device_model = "Test GPU";
  query.device_limits = "units=half";
  EXPECT_DOUBLE_EQ(only_best(query).time_us.value(), 20);
}

TEST_F(BestTest, QueriesSelectByEveryField) {
  for (const auto regime : {Regime::cold, Regime::warm})
    for (const auto dtype : {Dtype::f32, Dtype::bf16})
      for (const auto cols : {100, 200}) {
        auto w = Workload::of(Operation::rmsnorm, dtype, Shape::of(8, cols), regime);
        db.record(base(measured(w, "block.b256", 1)));
        w.options.weight = false;
        db.record(base(measured(w, "block.b256", 1)));
      }
  EXPECT_EQ(db.best({}).size(), 16u);
  BestQuery query;
  query.regime = Regime::warm;
  EXPECT_EQ(db.best(query).size(), 8u);
  query.dtype = Dtype::f32;
  EXPECT_EQ(db.best(query).size(), 4u);
  query.shape = Shape::of(8, 200);
  EXPECT_EQ(db.best(query).size(), 2u);
  query.options = default_options(Operation::rmsnorm);
  EXPECT_EQ(only_best(query).workload(), Workload::of(Operation::rmsnorm, Dtype::f32, Shape::of(8, 200), Regime::warm));
  query.op = Operation::layernorm;
  EXPECT_TRUE(db.best(query).empty());
}

TEST_F(BestTest, DecisionIsPreferredWhilePresentAndCurrent) {
  db.record(base(measured(softmax(), "block.b256", 6)));
  db.record(measured(softmax(), "warp.b128", 5));
  db.record(measured(softmax(), "warp.b64", 5.05));
  Decision decision;
  decision.key = key_of(softmax(), "warp.b64");
  decision.ties = {"warp.b128"};
  decision.confidence = 0.95, decision.margin = 0.01, decision.method = "paired finals";
  db.record_decision(decision);
  auto row = only_best();
  EXPECT_EQ(row.config, "warp.b64");
  EXPECT_EQ(row.ties, 1);
  EXPECT_TRUE(row.decided);
  const auto read = db.decision(key_of(softmax()));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->ties, decision.ties);
  EXPECT_EQ(read->method, "paired finals");
  db.record(measured(softmax(), "warp.b32", 8));
  EXPECT_FALSE(db.decision(key_of(softmax())).has_value()) << "a later measurement makes it stale";
  row = only_best();
  EXPECT_EQ(row.config, "warp.b128");
  EXPECT_FALSE(row.decided);
}

TEST_F(BestTest, DecisionIsNotHonouredWhenSlowerThanTheBaseOrNotEligible) {
  db.record(base(measured(softmax(), "block.b256", 5)));
  db.record(measured(softmax(), "warp.b128", 5.01));
  db.record(ineligible(measured(softmax(), "unsafe.b128", 1)));
  Decision decision;
  decision.key = key_of(softmax(), "warp.b128");
  db.record_decision(decision);
  EXPECT_EQ(only_best().config, "block.b256");
  decision.key.config = "unsafe.b128";
  db.record_decision(decision);
  EXPECT_EQ(only_best().config, "block.b256");
  decision.key.config = "never.measured";
  EXPECT_THROW(db.record_decision(decision), NotFoundError);
}

TEST_F(BestTest, TwoThousandWorkloadsTimesSixtyConfigsTakeLessThanASecond) {
  std::vector<Measurement> all;
  for (int w = 0; w < 2000; ++w) {
    const auto op = w % 2 ? Operation::softmax : Operation::copy;
    const auto workload = Workload::of(op, Dtype::bf16, Shape::of(64, 1000 + w / 2));
    for (int c = 0; c < 60; ++c) {
      all.push_back(measured(workload, "warp.b" + std::to_string(c), 5 + (c * 7 + w) % 60));
      all.back().is_base = c == 30;
    }
  }
  ASSERT_EQ(db.record_all(all), 120000);
  const auto start = std::clock();  // of this process: other work on the machine does not count
  const auto rows = db.best({});
  const double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(rows.size(), 2000u);
  EXPECT_TRUE(std::all_of(rows.begin(), rows.end(), [](auto& r) { return r.ceiling_fraction.has_value(); }));
  RecordProperty("seconds", std::to_string(seconds));
  EXPECT_LT(seconds, 1.0);
}

}  // namespace
}  // namespace rowtune::db::test
