#include "tuner/winners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tuner/cli.hpp"

namespace rowtune {
namespace {

using Cell = nlohmann::ordered_json;

template <class T>
Cell cell(const std::optional<T>& value) {
  return value ? Cell(*value) : Cell(nullptr);
}

template <class Get>
bool varies(const std::vector<db::BestRow>& rows, Get get) {
  return std::any_of(rows.begin(), rows.end(), [&](const db::BestRow& row) { return get(row) != get(rows.front()); });
}

std::string interval(const db::BestRow& row) {
  if (!row.time_lo_us || !row.time_hi_us) return "";
  return fmt::format("{} .. {}", format_us(*row.time_lo_us), format_us(*row.time_hi_us));
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

Table best_table(const std::vector<db::BestRow>& rows, bool with_ranks) {
  const auto if_it_varies = [&](auto get, const char* heading) { return varies(rows, get) ? heading : ""; };
  const std::string model = if_it_varies([](const auto& r) { return r.device_model; }, "model");
  const std::string regime = if_it_varies([](const auto& r) { return r.regime; }, "regime");
  const std::string options = if_it_varies([](const auto& r) { return r.options; }, "options");
  const std::string status = if_it_varies([](const auto& r) { return r.status; }, "status");
  Table table;
  // Behind the columns of the contract: what else the database says, and the forms that people read.
  table.columns = {{"device", ""},
                   {"op", "op"},
                   {"dtype", "dtype"},
                   {"rows", ""},
                   {"cols", ""},
                   {"shape", "shape"},
                   {"regime", regime},
                   {"rank", with_ranks ? "rank" : "", 0},
                   {"config", "config"},
                   {"block_size", ""},
                   {"rows_per_warp", ""},
                   {"vector_width", ""},
                   {"split_count", ""},
                   {"time_us", "us", 3},
                   {"interval", "95 % interval"},
                   {"time_lo_us", ""},
                   {"time_hi_us", ""},
                   {"gbps", "GB/s", 1},
                   {"ceiling_fraction", "of copy", 3},
                   {"gain_over_base", "gain over base", 2, "x"},
                   {"base_config", ""},
                   {"base_time_us", ""},
                   {"ties", "ties"},
                   {"max_error_ulp", "error, ulp", 3},
                   {"status", status},
                   {"eligible", with_ranks ? "may win" : ""},
                   {"options", options},
                   {"ld", ""},
                   {"off", ""},
                   {"decided", ""},
                   {"settled", ""},
                   {"sample_count", ""},
                   {"device_model", model},
                   {"toolchain", ""},
                   {"measured_at", ""}};
  for (const db::BestRow& r : rows)
    table.rows.push_back({r.device,
                          r.op,
                          r.dtype,
                          r.rows,
                          r.cols,
                          to_string(Shape{r.rows, r.cols, r.ld, r.off}),
                          r.regime,
                          r.rank,
                          r.config,
                          r.block_size,
                          r.rows_per_warp,
                          r.vector_width,
                          r.split_count,
                          cell(r.time_us),
                          interval(r),
                          cell(r.time_lo_us),
                          cell(r.time_hi_us),
                          cell(r.gbps),
                          cell(r.ceiling_fraction),
                          cell(r.gain_over_base),
                          r.base_config,
                          cell(r.base_time_us),
                          r.ties,
                          cell(r.max_error_ulp),
                          r.status,
                          r.eligible,
                          r.options,
                          r.ld,
                          r.off,
                          r.decided,
                          r.settled,
                          r.sample_count,
                          r.device_model,
                          r.toolchain,
                          r.measured_at});
  return table;
}

std::string closing_words(const TuneReport& report, const Winners& winners, const std::string& database) {
  std::string text = fmt::format("measured {} configs in {}", report.measured, format_duration(report.seconds));
  if (report.finals > 0) text += fmt::format(", held {} finals", report.finals);
  if (report.interrupted)
    text += fmt::format("; interrupted: the results are saved in {}, the same command goes on from there", database);
  else if (report.out_of_budget)
    text +=
        fmt::format("; the budget is spent with {} configs to go: the same command goes on from there", report.left);
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
  if (!winners.rows.empty()) {
    const db::BestRow& row = winners.rows.front();
    const std::string db_option = database == "rowtune.db" ? "" : " --db " + database;
    text +=
        fmt::format("next:\n  rowtune best{} --op {} --dtype {} --shape {} --top 5\n  rowtune dispatch{} --out table\n",
                    db_option, row.op, row.dtype, to_string(Shape{row.rows, row.cols, row.ld, row.off}), db_option);
  }
  return text;
}

}  // namespace rowtune
