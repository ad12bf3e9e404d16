#pragma once
// What a tune found, in words and as a table.

#include <string>
#include <vector>

#include "db/database.hpp"
#include "reports/fields.hpp"
#include "tuner/plan.hpp"
#include "tuner/tune.hpp"

namespace rowtune {

struct Winners {
  std::vector<db::BestRow> rows;         ///< of the workloads asked for
  std::vector<Workload> without_winner;  ///< nothing measured, or nothing right
  std::vector<db::Failure> failures;     ///< of every workload of the plan
};

Winners winners_of(const Plan& plan, const DeviceInfo& device, const db::Database& database);

/// `ranks`: show the rank, and whether a config may win at all.
/// `baselines` (may be empty) add the fastest other library of each workload.
reports::Sheet best_sheet(const std::vector<db::BestRow>& rows, bool ranks,
                          const std::vector<db::BaselineRow>& baselines = {});

/// Failures grouped by reason, what was left out and why, and what to do next.
std::string closing_words(const TuneReport& report, const Winners& winners, const std::string& database);

}  // namespace rowtune
