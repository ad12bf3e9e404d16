#pragma once
// What a tune found, in words and as a table.

#include <string>
#include <string_view>
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
  std::vector<db::EnergyRow> energies;   ///< of the workloads asked for
};

enum class Objective { time, energy, edp };
Objective parse_objective(std::string_view text);  ///< throws UsageError naming the three

/// The `top` configs of each workload by joules per launch, or by joules x time.
reports::Sheet energy_sheet(const std::vector<db::EnergyRow>& rows, Objective objective, int top);

Winners winners_of(const Plan& plan, const DeviceInfo& device, const db::Database& database);

/// `ranks`: show the rank, and whether a config may win at all.
/// `baselines` (may be empty) add the fastest other library of each workload.
reports::Sheet best_sheet(const std::vector<db::BestRow>& rows, bool ranks,
                          const std::vector<db::BaselineRow>& baselines = {});

/// Failures grouped by reason, what was left out and why, and what to do next.
std::string closing_words(const TuneReport& report, const Winners& winners, const std::string& database);

}  // namespace rowtune
