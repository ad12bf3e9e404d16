#pragma once
// Plays a strategy on spaces that were recorded in full, without a device: how far from the best is it after how many
// evaluations?

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "db/records.hpp"
#include "tuner/plan.hpp"

namespace rowtune {

/// A workload with a time for every config of its space that ran.
struct RecordedSpace {
  PlannedWorkload planned;
  std::vector<db::Measurement> results;  ///< of planned.configs, in their order
  double best_us = 0;                    ///< of the configs that may be chosen
};

/// From rows of the leaderboard: workloads of which at least two configs ran, the base among them.
std::vector<RecordedSpace> recorded_spaces(const std::vector<db::BestRow>& leaderboard);

struct ReplaySettings {
  std::string strategy = "auto";
  int replays = 1000;
  std::uint64_t seed = 1;
  /// Each replay tunes all the workloads in an order of its own, and strategies that heed hints get those of the ones
  /// before; otherwise every workload is tuned as if it were the first.
  bool hints = true;
};

/// The state after so many evaluations of each workload (or all of them, where a strategy ended before).
struct ReplayPoint {
  std::size_t evaluations = 0;  ///< 0: at the end of the strategy
  double evaluated = 0;         ///< configs, mean over workloads and replays
  double share = 0;             ///< of all configs of the spaces
  double median_regret = 0, mean_regret = 0, p90_regret = 0, worst_regret = 0;
  double within_1_percent = 0;  ///< share of the outcomes
};

/// For 1, 2, 3, 4, 6, 8, 12... evaluations, and for the end.
std::vector<ReplayPoint> replay(const std::vector<RecordedSpace>& spaces, const ReplaySettings& settings);

}  // namespace rowtune
