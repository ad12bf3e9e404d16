#include "tuner/replay.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace rowtune {
namespace {

/// Rows of a leaderboard: `workloads` shapes, two algorithms x 6 x 4 configs, and one that may not win. The best config
/// moves slowly with the columns.
std::vector<db::BestRow> leaderboard(int workloads) {
  std::vector<db::BestRow> rows;
  for (int w = 0; w < workloads; ++w)
    for (const char* algorithm : {"good", "poor", "unsafe"})
      for (int b : {32, 64, 128, 256, 512, 1024})
        for (int v : {1, 2, 4, 8}) {
          db::BestRow row;
          row.op = "softmax", row.dtype = "bf16", row.regime = "cold", row.options = "-", row.status = "ok";
          row.rows = 64, row.cols = row.ld = std::int64_t{256} << w;
          row.config = std::string(algorithm) + ".b" + std::to_string(b) + ".v" + std::to_string(v);
          row.eligible = row.algorithm != "unsafe" && std::string(algorithm) != "unsafe";
          row.is_base = row.config == "poor.b32.v1";
          const double off = std::abs(std::log2(b) - (6 + 0.5 * w)) + std::abs(std::log2(v) - 2);
          row.time_us = (std::string(algorithm) == "poor"     ? 13
                         : std::string(algorithm) == "unsafe" ? 5
                                                              : 10) *
                        (1 + 0.05 * off);
          rows.push_back(row);
        }
  return rows;
}

TEST(Replay, RecordedSpacesNeedABaseAndKnowWhatMayWin) {
  const auto spaces = recorded_spaces(leaderboard(2));
  ASSERT_EQ(spaces.size(), 2u);
  EXPECT_EQ(spaces[0].planned.configs.size(), 72u);
  EXPECT_EQ(spaces[0].planned.configs[spaces[0].planned.base].name(), "poor.b32.v1");
  EXPECT_NEAR(spaces[0].best_us, 10, 1e-9);  // the unsafe ones are faster
  auto without_base = leaderboard(1);
  for (auto& row : without_base) row.is_base = false;
  EXPECT_TRUE(recorded_spaces(without_base).empty());
}

TEST(Replay, ExhaustiveEndsAtTheBestAndRegretNeverRises) {
  ReplaySettings settings;
  settings.strategy = "exhaustive";
  settings.replays = 20;
  const auto points = replay(recorded_spaces(leaderboard(3)), settings);
  EXPECT_EQ(points.back().evaluations, 0u);
  EXPECT_NEAR(points.back().share, 1, 1e-9);
  EXPECT_EQ(points.back().worst_regret, 0);
  EXPECT_NEAR(points.back().within_1_percent, 1, 1e-9);
  EXPECT_EQ(points.front().evaluations, 1u);
  EXPECT_GT(points.front().median_regret, 0.3);  // the base alone
  for (std::size_t i = 1; i < points.size(); ++i) EXPECT_LE(points[i].mean_regret, points[i - 1].mean_regret);
}

TEST(Replay, HintsOfSimilarWorkloadsHelpAuto) {
  ReplaySettings settings;
  settings.replays = 20;
  const auto spaces = recorded_spaces(leaderboard(6));
  const auto with_hints = replay(spaces, settings).back();
  settings.hints = false;
  const auto alone = replay(spaces, settings).back();
  EXPECT_LT(with_hints.evaluated, alone.evaluated);
  EXPECT_LE(with_hints.median_regret, 0.05);
  EXPECT_LE(with_hints.share, 0.2);
}

TEST(Replay, TheSameSeedGivesTheSame) {
  ReplaySettings settings;
  settings.strategy = "random";
  settings.replays = 3;
  const auto spaces = recorded_spaces(leaderboard(2));
  EXPECT_EQ(replay(spaces, settings).back().mean_regret, replay(spaces, settings).back().mean_regret);
  settings.seed = 2;
  ReplaySettings other = settings;
  other.seed = 3;
  EXPECT_NE(replay(spaces, settings).back().mean_regret, replay(spaces, other).back().mean_regret);
}

}  // namespace
}  // namespace rowtune
