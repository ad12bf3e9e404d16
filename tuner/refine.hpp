#pragma once
// Dispatch tables made better by measuring: the places off the grid that they hang on (dispatch_refine.hpp), a few at a
// time, the tables built anew after each round. No device: whoever calls it brings what measures.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "db/database.hpp"
#include "tuner/dispatch_evaluate.hpp"
#include "tuner/plan.hpp"
#include "tuner/tune.hpp"

namespace rowtune {

struct RefineSettings {
  db::BestQuery only;  ///< which tables: device, regime, perhaps operation and dtype
  DispatchSettings dispatch;
  double budget_seconds = 300;
  std::size_t places = 48;  ///< of each table
};

/// What became of a table's answers at its places. Regrets are against the best that was measured there.
struct RefinedTable {
  Operation op = Operation::softmax;
  Dtype dtype = Dtype::f32;
  std::size_t changed = 0;           ///< answers that are others than without the places
  std::vector<Trial> before, after;  ///< of the places, in the same order; without a time: not measured
};

struct RefineReport {
  std::vector<RefinedTable> tables;
  std::size_t measured = 0;  ///< configs
  bool interrupted = false;
  bool out_of_budget = false;
};

/// Measures configs of workloads for at most so many seconds, and records them in the database.
using MeasureWanted = std::function<TuneReport(const std::vector<WantedConfigs>&, double seconds)>;

/// Rounds, each of one table, all of which get as much of the time as they want and none more than others that want it,
/// until nothing is wanted any more, the time is spent or the measuring was interrupted. `say` hears a sentence a
/// round. Throws NotFoundError where the database has no table for this.
RefineReport refine(const db::Database& database, const Spaces& spaces, const RefineSettings& settings,
                    const MeasureWanted& measure, const std::function<void(const std::string&)>& say,
                    const Clock& now = steady_seconds);

}  // namespace rowtune
