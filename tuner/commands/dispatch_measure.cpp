#include "tuner/commands/dispatch_measure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "kernels/device.hpp"
#include "kernels/errors.hpp"
#include "tuner/dispatch_evaluate.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/pool.hpp"
#include "tuner/progress.hpp"
#include "tuner/refine.hpp"

namespace rowtune {
namespace {

using reports::Cell;
using reports::Style;

/// Workers on --device, which may be several of one model.
std::vector<WorkerGroup> workers_of(const CommandLine& line) {
  std::vector<WorkerSettings> workers;
  for (const std::string& id : device_ids(line.text("device"))) {
    WorkerSettings& worker = workers.emplace_back();
    worker.device = open_device(id)->info().id;  // one that is not here is refused in this program's own words
  }
  auto groups = start_workers(workers);
  if (groups.size() > 1)
    throw UsageError(fmt::format("rowtune dispatch: --device takes devices of one model; {} are of {}",
                                 line.text("device"), groups.size()));
  return groups;
}

reports::Sheet sheet_of(const RefineReport& report, Format format) {
  reports::Sheet sheet;
  sheet.heads = {column("op"),
                 column("dtype"),
                 column("shapes", "shapes", Style::count),
                 column("measured", "answers measured", Style::count),
                 column("changed", "changed", Style::count),
                 column("old_median", "old median"),
                 column("old_p95", "old 95 %"),
                 column("old_worst", "old worst"),
                 column("new_median", "new median"),
                 column("new_p95", "new 95 %"),
                 column("new_worst", "new worst")};
  const auto regret = [&](const std::optional<double>& value) {
    if (!value) return Cell();
    return format == Format::table ? Cell(fmt::format("{:.1f} %", 100 * *value)) : Cell(*value);
  };
  const auto add = [&](const std::string& op, const std::string& dtype, const RefinedTable& table) {
    const auto before = summarise(table.before), after = summarise(table.after);
    sheet.rows.push_back({op, dtype, after.trials, after.trials - after.unmeasured,
                          static_cast<std::int64_t>(table.changed), regret(before.median), regret(before.p95),
                          regret(before.worst), regret(after.median), regret(after.p95), regret(after.worst)});
  };
  RefinedTable all;
  for (const RefinedTable& table : report.tables) {
    add(to_string(table.op), to_string(table.dtype), table);
    all.changed += table.changed;
    all.before.insert(all.before.end(), table.before.begin(), table.before.end());
    all.after.insert(all.after.end(), table.after.begin(), table.after.end());
  }
  if (format == Format::table && report.tables.size() > 1) add("all", "", all);
  return sheet;
}

}  // namespace

bool tune_off_grid(const CommandLine& line, const DispatchTables& tables) {
  auto groups = workers_of(line);
  const DeviceInfo device = groups.front().devices.front()->info();
  const Spaces spaces = Spaces::of(device);
  TuneSettings settings;
  settings.budget_seconds = parse_duration(line.text("budget")) / static_cast<double>(tables.tables.size());
  const InterruptGuard interrupt;
  ConsoleProgress progress(true, false);
  for (const auto& table : tables.tables) {
    if (table.device_model != device.model) continue;
    std::vector<Workload> workloads;
    for (const auto& shape : shapes_off_grid(table))
      workloads.push_back({table.op, table.dtype, shape, table.regime, table.options});
    if (workloads.empty()) continue;
    if (!line.get<bool>("quiet"))
      tell(fmt::format("tuning {} {}: {} shapes off the grid, {}\n", to_string(table.op), to_string(table.dtype),
                       workloads.size(), format_duration(*settings.budget_seconds)));
    const auto plan = [&](const Device& worker, db::Database& database) {
      return make_plan(workloads, worker, spaces, database);
    };
    if (plan_and_tune(groups, line.text("against"), plan, settings, progress, interrupt.requested()).interrupted)
      return false;
  }
  return true;
}

int refine_tables(const CommandLine& line, const db::BestQuery& only, const DispatchSettings& settings, Format format) {
  const db::Database database = db::Database::open(line.database(), db::Database::Mode::read_only);
  RefineSettings refine_settings{only, settings, parse_duration(line.text("budget")),
                                 static_cast<std::size_t>(line.get<int>("places"))};
  const std::string id = device_ids(line.text("device")).front();
  const DeviceInfo here = open_device(id)->info();
  refine_settings.only.device_model = here.model, refine_settings.only.device_limits = here.limits;
  db::BestQuery any = only;
  any.device_model.reset();
  std::set<std::string> models;
  bool is_known = false;
  for (const auto& row : database.best(any)) {
    models.insert(row.device_model);
    is_known = is_known || (row.device_model == here.model && row.device_limits == here.limits);
  }
  if (!is_known)
    throw NotFoundError(fmt::format(
        "{} has nothing for {}, which {} is, to refine; what was asked for is there of: {}. Tune first: rowtune tune "
        "--device {} --db {}",
        line.database(), here.model, id, models.empty() ? "no device" : fmt::format("{}", fmt::join(models, ", ")), id,
        line.database()));
  db::Database::open(line.database(), db::Database::Mode::read_write);  // refused before a worker starts

  auto groups = workers_of(line);
  const DeviceInfo& device = groups.front().devices.front()->info();
  const Spaces spaces = Spaces::of(device);
  const bool quiet = line.get<bool>("quiet"), terminal = stderr_is_terminal();
  const InterruptGuard interrupt;
  ConsoleProgress progress(quiet || !terminal, terminal);
  const auto measure = [&](const std::vector<WantedConfigs>& wanted, double seconds) {
    TuneSettings tune;
    tune.budget_seconds = seconds;
    tune.finals = false;
    const auto plan = [&](const Device& worker, db::Database& file) { return make_plan(wanted, worker, spaces, file); };
    return plan_and_tune(groups, line.database(), plan, tune, progress, interrupt.requested());
  };
  const auto say = [&](const std::string& sentence) {
    progress.clear();
    if (!quiet) tell(sentence + "\n");
  };
  const RefineReport report = refine(database, spaces, refine_settings, measure, say);
  progress.clear();
  if (!quiet) {
    std::string end = fmt::format("{} results, saved in {}", report.measured, line.database());
    if (report.interrupted)
      end += "; interrupted: the same command goes on from there";
    else if (report.out_of_budget)
      end += "; the budget is spent: the same command goes on from there";
    tell(end + "\n");
  }
  print(sheet_of(report, format), format);
  return report.interrupted ? exit_interrupted : exit_done;
}

}  // namespace rowtune
