#pragma once
// What a tune found, in words and as a table.

#include <string>
#include <vector>

#include "db/database.hpp"
#include "tuner/plan.hpp"
#include "tuner/table.hpp"
#include "tuner/tune.hpp"

namespace rowtune {

struct Winners {
  std::vector<db::BestRow> rows;         ///< of the workloads asked for
  std::vector<Workload> without_winner;  ///< nothing measured, or nothing right
  std::vector<db::Failure> failures;     ///< of every workload of the plan
};

Winners winners_of(const Plan& plan, const DeviceInfo& device, const db::Database& database);

/// The columns that `best` has too; in a table only those that people read, and those that vary.
Table best_table(const std::vector<db::BestRow>& rows, bool with_ranks);

/// Failures grouped by reason, what was left out and why, and what to do next.
std::string closing_words(const TuneReport& report, const Winners& winners, const std::string& database);

}  // namespace rowtune
