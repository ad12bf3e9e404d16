#pragma once
// The final: the best few configs of a workload and its base, sampled in turns over several allocations, until they are
// told apart or declared ties. Sweeping times each config at another moment and on one placement in memory; both move
// times by more than what separates good configs.

#include <atomic>
#include <string>
#include <vector>

#include "kernels/config.hpp"
#include "tuner/measure.hpp"
#include "tuner/measurer.hpp"
#include "tuner/statistics.hpp"

namespace rowtune {

struct FinalSettings {
  double margin = 0.01;      ///< configs this close are ties: what times of one config move from one tune to the next
  double alike = 0.0025;     ///< ties this close are as fast: of them the simplest wins
  double confidence = 0.95;  ///< of all comparisons of a final together (Bonferroni)
  int finalists = 32;        ///< at most, by their medians
  int doubtful = 4;          ///< at most, whose interval reaches the best though their median does not: a noisy moment
  double entry = 0.03;       ///< share of the best time within which a config enters; the base always does
  int min_allocations = 2, max_allocations = 4;  ///< the first is the one of the sweep
  int rounds = 11;                               ///< per allocation
  double max_seconds = 3;
};

/// A config that ran right and may be chosen, with its time from the sweep.
struct Contender {
  Config config;
  double time_us = 0;
  double low_us = 0;  ///< of its interval
  bool is_base = false;
};

/// The contenders that enter, the fastest first.
std::vector<Contender> enter_final(std::vector<Contender> contenders, const FinalSettings& settings);

struct Finalist {
  Contender contender;
  std::vector<double> samples_us;
  Estimate estimate;
  PairedComparison against_leader;  ///< of the leader itself: a ratio of 1
};

struct FinalResult {
  std::vector<Finalist> finalists;
  std::string winner;             ///< the simplest of those as fast as the fastest; the base when it is among them
  std::vector<std::string> ties;  ///< besides the winner: within the margin, or not shown to be beyond it
  bool settled = false;           ///< false: a limit came before every finalist was told apart or declared a tie
  bool worth_keeping = false;     ///< rounds enough for intervals of 95 %
  std::string method;             ///< a sentence for the database
};

/// `finalists` as `enter_final` gives them, at least one. Ends early (unsettled) when `stop` is set. Throws
/// ConfigFailure when a finalist fails, which happened to be right before.
FinalResult hold_final(Measurer& measurer, const Workload& workload, const std::vector<Contender>& finalists,
                       const FinalSettings& settings, const std::atomic<bool>& stop, const Clock& now);

/// The order in which ties are resolved: the base, then fewer blocks that share a row, fewer threads, fewer rows per
/// warp, narrower accesses, then by name.
bool simpler(const Contender& a, const Contender& b);

}  // namespace rowtune
