// Shapes that were not tuned: what each config is predicted to cost there, which kernel is chosen, and the regret.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cuda/known_devices.hpp"
#include "kernels/space.hpp"
#include "tuner/dispatch_evaluate.hpp"
#include "tuner/dispatch_measured.hpp"
#include "tuner/dispatch_predict.hpp"
#include "tuner/dispatch_table.hpp"
#include "tuner/tests/dispatch_support.hpp"

namespace rowtune {
namespace {

/// Of each of the configs, on a shape that was not tuned.
std::vector<double> predicted(const std::vector<db::BestRow>& rows, const std::vector<std::string>& configs,
                              const Shape& shape, bool ragged = false) {
  const auto tables = measured_tables(rows);
  const Predictor predictor(tables.at(0), configs);
  const auto place = predictor.place(static_cast<double>(shape.rows), static_cast<double>(shape.cols), ragged);
  std::vector<double> regrets;
  for (std::size_t i = 0; i < configs.size(); ++i) regrets.push_back(predictor.regret(place, i));
  return regrets;
}

/// block(64) loses 10 % with each doubling of the columns, block(512) nothing.
std::vector<db::BestRow> slower_with_cols() {
  std::vector<db::BestRow> all;
  for (int doubling = 0; doubling < 4; ++doubling)
    for (const auto& r :
         on_h200(4096, 2048 << doubling,
                 {{block(512), 10}, {block(64), 10 * std::pow(1.1, doubling)}, {base_of_long_rows, 40}}))
      all.push_back(r);
  return all;
}

/// The regions ask once for all rows what is not marked as a matter of their number.
TEST(RegionsTest, ConstraintsThatAreNotByRowsHoldForAnyOrNone) {
  const auto device = cuda::known_device(90);
  for (const Operation op : all_operations())
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
      for (const std::int64_t cols : {1, 1000, 16384, 152064})
        for (const std::int64_t tuned_rows : {1, 32768})
          for (const auto& config :
               enumerate_space(Workload::of(op, dtype, Shape::of(tuned_rows, cols)), device).configs)
            for (const auto& c : algorithm_named(DeviceKind::cuda, config.algorithm).constraints)
              for (const bool ragged : {false, true}) {
                if (c.by_rows) continue;
                const auto holds = [&](std::int64_t rows) {
                  auto w = Workload::of(op, dtype, Shape::of(rows, cols));
                  if (ragged) w.shape.ld = cols | 1, w.shape.off = 1;
                  return c.holds(w, device, config);
                };
                for (const std::int64_t rows : {2, 100, 1 << 20, 2147483647})
                  ASSERT_EQ(holds(rows), holds(1)) << c.name << ", " << config.name() << ", rows " << rows;
              }
}

TEST(PredictorTest, FollowsWhatChangesWithTheShape) {
  const std::vector<std::string> configs{block(64), block(512), base_of_long_rows};
  double last = -1;
  for (const int cols : {2048, 3000, 4096, 6000, 8192, 12000, 16384, 24000}) {
    const auto regrets = predicted(slower_with_cols(), configs, Shape::of(4096, cols));
    EXPECT_GT(regrets[0], last) << cols << ": slower with more columns, between and beyond";
    EXPECT_GT(regrets[0], regrets[1]);
    EXPECT_GT(regrets[2], 1) << "four times as slow everywhere";
    last = regrets[0];
  }
}

TEST(PredictorTest, ExpectsLittleOfWhatWasNotMeasuredAndTheMoreTheNearer) {
  const std::vector<std::string> configs{"block.b1024.r1.v8.s1.p0.m0.g0.h0.x1", block(512)};
  const auto near = predicted(slower_with_cols(), configs, Shape::of(4096, 4096));
  EXPECT_NEAR(near[0], 0.3, 1e-12) << "measured nowhere";
  EXPECT_LT(near[1], 0.1) << "the best everywhere around";
  // One that was measured far away only: the tuned shapes between say nothing of it.
  auto rows = slower_with_cols();
  auto once = row(4096, 16384, configs[0], 10);
  once.device_model = "NVIDIA H200", once.device_limits = h200, once.rank = 9;
  rows.push_back(once);
  const double far = predicted(rows, configs, Shape::of(4096, 2048))[0];
  const double beside = predicted(rows, configs, Shape::of(4096, 16384))[0];
  EXPECT_LT(beside, far);
  EXPECT_LT(far, 0.3);
}

TEST(PredictorTest, RaggedRowsSpeakForRaggedRows) {
  std::vector<db::BestRow> rows = on_h200(64, 1024, {{block(64), 10}, {block(128), 12}, {base_of_long_rows, 40}});
  for (const auto& r : on_h200(64, 1001, {{block(128), 10}, {block(64), 12}, {base_of_long_rows, 40}}))
    rows.push_back(r);
  const auto aligned = predicted(rows, {block(64), block(128)}, Shape::of(64, 1012));
  const auto ragged = predicted(rows, {block(64), block(128)}, Shape::of(64, 1012), true);
  EXPECT_LT(aligned[0], aligned[1]);
  EXPECT_GT(ragged[0], ragged[1]);
}

TEST(RegionsTest, TheBaseIsThatOfTheRowsLengthNotOfTheNearestTunedShape) {
  // The base of 1024 columns, a warp a row, is as good as the best there; that of 1100 columns is hopeless.
  const std::string short_base = "lanes.b128.r1.v8.s1.p0.h0.x1";
  auto rows = on_h200(4096, 1024, {{block(64), 10}, {short_base, 10.1}});
  for (const auto& r : on_h200(4096, 4096, {{block(64), 10}, {base_of_long_rows, 70}})) rows.push_back(r);
  const auto tables = dispatch_tables(rows);
  const auto match = lookup(tables, "NVIDIA H200", Operation::softmax, Dtype::bf16, Shape::of(4096, 1100));
  EXPECT_EQ(match.kind, MatchKind::near);
  EXPECT_EQ(match.config, block(64));
}

TEST(RegionsTest, AreSortedAndWithinTheKernels) {
  for (const int most : {1, 2, 48}) {
    const auto table = dispatch_tables(slower_with_cols(), {0.02, most}).tables.at(0);
    EXPECT_LE(static_cast<int>(table.kernels.size()), most);
    for (const auto* regions : {&table.aligned, &table.ragged}) {
      ASSERT_FALSE(regions->empty());
      for (std::size_t i = 0; i < regions->size(); ++i) {
        EXPECT_LT(regions->at(i).kernel, static_cast<int>(table.kernels.size()));
        if (i == 0) continue;
        const auto &a = regions->at(i - 1), &b = regions->at(i);
        EXPECT_TRUE(a.cols < b.cols || (a.cols == b.cols && a.rows < b.rows)) << "one of each";
      }
    }
  }
}

TEST(EvaluateTest, LeavesEachShapeOutAndJudgesByItsTimes) {
  const auto trials = leave_one_out(three_workloads(), {});
  ASSERT_EQ(trials.size(), 3u);
  for (const auto& trial : trials) {
    EXPECT_EQ(trial.kind, MatchKind::near);
    ASSERT_TRUE(trial.time_us.has_value());
  }
  // 512 rows: the others speak for block(256), which costs 10 % there.
  EXPECT_EQ(trials[1].config, block(256));
  EXPECT_EQ(trials[1].best_config, block(1024));
  EXPECT_NEAR(trials[1].regret().value(), 0.1, 1e-12);
  const auto summary = summarise(trials);
  EXPECT_EQ(summary.trials, 3);
  EXPECT_EQ(summary.base, 0);
  EXPECT_LT(summary.worst.value(), 0.21);
}

TEST(EvaluateTest, TellsWhatIsBetweenTunedShapesFromWhatIsBeyond) {
  const auto trials = leave_one_out(three_workloads(), {});
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_TRUE(trials[0].beyond) << "64 rows: the others have 512 and 4096";
  EXPECT_FALSE(trials[1].beyond);
  EXPECT_TRUE(trials[2].beyond);
  const auto table = dispatch_tables(three_workloads()).tables.at(0);
  EXPECT_FALSE(is_beyond(table, Shape::of(100, 8192)));
  EXPECT_TRUE(is_beyond(table, Shape::of(100, 8191)));
  EXPECT_TRUE(is_beyond(table, Shape::of(100, 8193)));
  EXPECT_TRUE(is_beyond({}, Shape::of(100, 8192))) << "nothing was tuned";
}

TEST(EvaluateTest, QuantilesAreThoseOfTheTrialsThatWereMeasured) {
  std::vector<Trial> trials;
  for (int i = 1; i <= 100; ++i) {
    Trial t;
    t.best_us = 100, t.time_us = 100 + i;
    trials.push_back(t);
  }
  trials.push_back(Trial{});
  const auto s = summarise(trials);
  EXPECT_EQ(s.trials, 101);
  EXPECT_EQ(s.unmeasured, 1);
  EXPECT_NEAR(s.median.value(), 0.50, 1e-9);
  EXPECT_NEAR(s.p95.value(), 0.95, 1e-9);
  EXPECT_NEAR(s.worst.value(), 1.00, 1e-9);
  EXPECT_FALSE(summarise({}).median.has_value());
}

TEST(EvaluateTest, ShapesOffTheGridAreNotOnIt) {
  const auto table = dispatch_tables(three_workloads()).tables.at(0);
  const auto shapes = shapes_off_grid(table);
  EXPECT_GE(shapes.size(), 5u);
  bool odd = false;
  for (const auto& shape : shapes) {
    odd |= shape.cols % 8 != 0;
    for (const auto& e : table.entries) EXPECT_FALSE(e.rows == shape.rows && e.cols == shape.cols);
  }
  EXPECT_TRUE(odd);
}

}  // namespace
}  // namespace rowtune
