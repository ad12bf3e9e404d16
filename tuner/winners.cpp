#include "tuner/winners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "reports/findings.hpp"
#include "tuner/cli.hpp"

namespace rowtune {
namespace {

/// A --budget that should do for what is left, from how long a config took so far.
std::string budget_for(const TuneReport& report) {
  const double each = report.seconds / static_cast<double>(std::max<std::size_t>(1, report.measured));
  const double minutes = std::ceil(1.2 * each * static_cast<double>(report.left) / 60);
  return minutes < 100 ? fmt::format("{:.0f}m", minutes) : fmt::format("{:.0f}h", std::ceil(minutes / 60));
}

/// Medians whose interval is wider than asked for, with both numbers and what to do.
std::string unsettled_words(const std::vector<db::BestRow>& rows) {
  std::size_t unsettled = 0;
  double widest = 0;
  for (const db::BestRow& row : rows) {
    if (row.settled || !row.time_us || !row.time_lo_us || !row.time_hi_us) continue;
    ++unsettled;
    widest = std::max(widest, 0.5 * (*row.time_hi_us - *row.time_lo_us) / *row.time_us);
  }
  if (unsettled == 0) return "";
  return fmt::format(
      "warning: {} of {} winners' times did not settle: their 95 % intervals reach +-{:.1f} %, asked were +-{:.1f} %. "
      "A quiet machine helps, or more time (--budget)\n",
      unsettled, rows.size(), 100 * widest, 100 * SamplingLimits().relative_half_width);
}

constexpr double above_its_ceiling = 1.03;  ///< share: less is noise of the two times

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Objective parse_objective(std::string_view text) {
  if (text == "time") return Objective::time;
  if (text == "energy") return Objective::energy;
  if (text == "edp") return Objective::edp;
  throw UsageError(fmt::format("unknown objective '{}'; choose from time, energy, edp", text));
}

reports::Sheet energy_sheet(const std::vector<db::EnergyRow>& rows, Objective objective, int top) {
  using reports::Style;
  reports::Sheet sheet;
  reports::Head millijoules = column("millijoules", "energy", Style::rate);
  millijoules.unit = "mJ";
  reports::Head watts = column("watts", "power", Style::rate);
  watts.unit = "W";
  sheet.heads = {column("device_model", "device"),
                 column("op"),
                 column("dtype"),
                 column("shape"),
                 column("regime"),
                 column("config"),
                 millijoules,
                 column("time_us", "time", Style::time),
                 watts,
                 column("gain_over_base", "gain", Style::ratio),
                 column("is_base", "base", Style::flag)};
  const auto cost = [objective](const db::EnergyRow& row) {
    return objective == Objective::edp ? row.joules * row.time_us : row.joules;
  };
  std::map<std::pair<std::string, Workload>, std::vector<const db::EnergyRow*>> groups;
  for (const db::EnergyRow& row : rows) groups[{row.device_model + row.device_limits, row.workload}].push_back(&row);
  for (auto& [key, members] : groups) {
    std::sort(members.begin(), members.end(), [&](const auto* a, const auto* b) { return cost(*a) < cost(*b); });
    const auto base = std::find_if(members.begin(), members.end(), [](const auto* row) { return row->is_base; });
    for (std::size_t i = 0; i < std::min(members.size(), static_cast<std::size_t>(top)); ++i) {
      const db::EnergyRow& row = *members[i];
      sheet.rows.push_back(
          {row.device_model, to_string(row.workload.op), to_string(row.workload.dtype), to_string(row.workload.shape),
           to_string(row.workload.regime), row.config, 1e3 * row.joules, row.time_us, 1e6 * row.joules / row.time_us,
           base == members.end() ? reports::Cell() : reports::Cell(cost(**base) / cost(row)), row.is_base});
    }
  }
  return sheet;
}

Winners winners_of(const Plan& plan, const DeviceInfo& device, const db::Database& database) {
  std::set<Workload> asked, planned;
  for (const PlannedWorkload& each : plan.workloads) {
    planned.insert(each.workload);
    if (!each.only_ceiling) asked.insert(each.workload);
  }
  db::BestQuery query;
  query.device_model = device.model;
  query.device_limits = device.limits;
  Winners winners;
  for (db::BestRow& row : database.best(query)) {
    const Workload workload = row.workload();
    if (asked.erase(workload) != 0) winners.rows.push_back(std::move(row));
  }
  winners.without_winner.assign(asked.begin(), asked.end());
  for (db::EnergyRow& row : database.energy(query))
    if (planned.contains(row.workload)) winners.energies.push_back(std::move(row));
  for (db::Failure& failure : database.failures(query)) {
    const Workload workload{parse_operation(failure.op), parse_dtype(failure.dtype),
                            Shape{failure.rows, failure.cols, failure.ld, failure.off}, parse_regime(failure.regime),
                            parse_options(failure.options)};
    if (planned.contains(workload)) winners.failures.push_back(std::move(failure));
  }
  return winners;
}

reports::Sheet best_sheet(const std::vector<db::BestRow>& rows, bool ranks,
                          const std::vector<db::BaselineRow>& baselines) {
  reports::Sheet sheet = reports::sheet_of(reports::best_fields(), rows);
  for (reports::Head& head : sheet.heads)
    if (ranks && (head.name == "rank" || head.name == "eligible")) head.hidden = false;
  const reports::FastestOthers fastest = reports::fastest_others(baselines);
  if (fastest.empty()) return sheet;
  sheet.heads.push_back(column("best_other", "fastest other"));
  sheet.heads.push_back(column("best_other_us", "its time", reports::Style::time));
  sheet.heads.push_back(column("speedup_over_other", "speedup", reports::Style::ratio));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<reports::Cell>& cells = sheet.rows[i];
    cells.resize(sheet.heads.size());  // not known
    const auto found = fastest.find({rows[i].device_model, rows[i].workload()});
    if (found == fastest.end()) continue;
    const db::Baseline& other = found->second.baseline;
    const std::size_t first = cells.size() - 3;
    cells[first] = other.impl;
    cells[first + 1] = other.time_us;
    if (rows[i].time_us) cells[first + 2] = other.time_us / *rows[i].time_us;
  }
  return sheet;
}

std::string closing_words(const TuneReport& report, const Winners& winners, const std::string& database) {
  std::string text = fmt::format("measured {} configs in {}", report.measured, format_duration(report.seconds));
  if (report.finals > 0) text += fmt::format(", held {} finals", report.finals);
  if (report.seconds > 0 && report.busy_seconds > 0)
    text += fmt::format("; {} busy {:.0f} % of the time", report.workers == 1 ? "device" : "devices",
                        100 * std::min(1.0, report.busy_seconds / (report.seconds * report.workers)));
  if (report.workers > 1)
    text += fmt::format("; {:.1f} workloads a minute on {} devices",
                        60 * static_cast<double>(report.workloads) / report.seconds, report.workers);
  if (report.interrupted)
    text += fmt::format("; interrupted: the results are saved in {}, the same command goes on from there", database);
  else if (report.out_of_budget)
    text += fmt::format(
        "; the budget is spent with {} configs to go: the same command goes on from there; with --budget {} it "
        "would be about done",
        report.left, budget_for(report));
  text += "\n";

  if (!winners.failures.empty()) {
    std::map<std::pair<std::string, std::string>, std::vector<const db::Failure*>> groups;
    for (const db::Failure& failure : winners.failures) groups[{failure.status, failure.algorithm}].push_back(&failure);
    text += fmt::format("{} failed, and are in the view `failures`:\n", winners.failures.size());
    for (const auto& [reason, members] : groups)
      text += fmt::format("  {:<14} {:>4} of {}, such as {} ({} {} {}x{}): {}\n", reason.first, members.size(),
                          reason.second, members[0]->config, members[0]->op, members[0]->dtype, members[0]->rows,
                          members[0]->cols, first_line(members[0]->message));
  }
  const auto above = std::count_if(winners.rows.begin(), winners.rows.end(), [](const db::BestRow& row) {
    return row.ceiling_fraction && *row.ceiling_fraction > above_its_ceiling;
  });
  if (above > 0)
    text += fmt::format(
        "{} winners are faster than their ceiling, the best copy found: that copy needs more time than this run gave "
        "it\n",
        above);
  if (!winners.without_winner.empty()) {
    text += fmt::format("{} workloads have no winner yet, such as {}\n", winners.without_winner.size(),
                        to_string(winners.without_winner.front()));
  }
  text += unsettled_words(winners.rows);
  if (!winners.rows.empty()) {
    const auto not_a_copy = std::find_if(winners.rows.begin(), winners.rows.end(),
                                         [](const db::BestRow& each) { return each.op != to_string(Operation::copy); });
    const db::BestRow& row = not_a_copy == winners.rows.end() ? winners.rows.front() : *not_a_copy;
    const std::string db_option = database == "rowtune.db" ? "" : " --db " + database;
    text += fmt::format(
        "next:\n  rowtune best{} --op {} --dtype {} --shape {} --top 5\n"
        "  rowtune report{} --out report.html\n  rowtune dispatch{} --out table\n",
        db_option, row.op, row.dtype, to_string(Shape{row.rows, row.cols, row.ld, row.off}), db_option, db_option);
  }
  return text;
}

}  // namespace rowtune
