#include "tuner/winners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

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

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

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
  std::map<std::pair<std::string, Workload>, const db::Baseline*> fastest;
  for (const db::BaselineRow& row : baselines) {
    if (row.baseline.impl == "copy") continue;
    const db::Baseline*& best = fastest[{row.baseline.device_model, row.baseline.workload}];
    if (!best || row.baseline.time_us < best->time_us) best = &row.baseline;
  }
  if (fastest.empty()) return sheet;
  sheet.heads.push_back(column("best_other", "fastest other"));
  sheet.heads.push_back(column("best_other_us", "its time", reports::Style::time));
  sheet.heads.push_back(column("speedup_over_other", "speedup", reports::Style::ratio));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<reports::Cell>& cells = sheet.rows[i];
    cells.resize(sheet.heads.size());  // not known
    const auto found = fastest.find({rows[i].device_model, rows[i].workload()});
    if (found == fastest.end()) continue;
    const db::Baseline& other = *found->second;
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
