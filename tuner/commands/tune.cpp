// rowtune tune: sweeps workloads, records every result, prints the winners.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/identity.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/plan.hpp"
#include "tuner/pool.hpp"
#include "tuner/progress.hpp"
#include "tuner/shapes.hpp"
#include "tuner/tune.hpp"
#include "tuner/winners.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;

constexpr double quick_budget_seconds = 60;  ///< the preset `quick` promises a minute anywhere

std::string operation_list() {
  std::vector<std::string> names;
  for (const Operation op : all_operations()) names.push_back(to_string(op));
  return fmt::format("{}", fmt::join(names, ", "));
}

CommandLine describe() {
  CommandLine line(
      "tune", "tune [--op OPS] [--dtype DTYPES] [--shapes SHAPES] [options]",
      "Times every config of every workload, in turns that are fair to all of them, and records each result "
      "in the\ndatabase as it comes. Configs that the database has are skipped, so a run that was stopped "
      "goes on where it was.");
  line.add_device("auto (the first usable GPU, else cpu), cpu, cuda:N, a list of those, or cuda:all (a worker a GPU)");
  line.add("Options")("op", po::value<std::string>()->default_value("all")->value_name("OP,OP"),
                      ("operations: all, or some of " + operation_list()).c_str())(
      "dtype", po::value<std::string>()->default_value("all")->value_name("DTYPE,DTYPE"),
      "all, or some of f32, f16, bf16")(
      "shapes", po::value<std::string>()->default_value("quick")->value_name("SHAPES"),
      "quick (a minute anywhere), llm (the layers of today's language models), cliffs (beside each power of two), "
      "RxC,RxC... or a file with one shape a "
      "line")("regime", po::value<std::string>()->default_value("cold")->value_name("REGIME"),
              "cold (inputs from memory), warm (from cache) or overlapped")(
      "budget", po::value<std::string>()->value_name("TIME"),
      "such as 90s, 10m, 1h30m; shared fairly by the workloads, each of which gets its base config first. Without it: "
      "as "
      "long as it takes, but a minute for quick");
  line.add("Search")("strategy", po::value<std::string>()->default_value("exhaustive")->value_name("NAME"),
                     fmt::format("{}", fmt::join(strategy_names(), ", ")).c_str())(
      "evaluations", po::value<int>()->value_name("N"), "random and auto: configs per workload at most")(
      "seed", po::value<std::uint64_t>()->default_value(1)->value_name("N"), "of the order in which configs are tried")(
      "no-final", po::bool_switch(), "no paired final between the best few configs and the base")(
      "objective", po::value<std::string>()->default_value("time")->value_name("WHAT"),
      "time; energy (joules per launch) or edp (joules x time): then the energy of the finalists is measured too, a "
      "second each, where NVML has a counter")(
      "same-unit", po::bool_switch(),
      "only results of this very device count, not of others of its model; theirs are measured again and replaced");
  line.add("Workers")("timeout", po::value<std::string>()->default_value("60s")->value_name("TIME"),
                      "of one config, its buffers included: what takes longer has hung, and its worker is replaced")(
      "launcher", po::value<std::string>()->value_name("WORDS"),
      "starts workers through another program that keeps their standard input and output, such as "
      "\"srun --gpus=1\"")("workers", po::value<int>()->default_value(1)->value_name("N"),
                           "with --launcher: how many to start for each device, over a shared queue of workloads");
  line.add_database();
  line.add_format();
  line.add_quiet();
  line.add_example("rowtune tune", "every operation on the quick shapes, on the best device here");
  line.add_example("rowtune tune --op softmax --dtype bf16 --shapes 4096x1000,64x50000", "two shapes of your own");
  line.add_example("rowtune tune --shapes llm --strategy auto --device cuda:all",
                   "a part of each space, on all GPUs here");
  line.add_example("rowtune tune --shapes llm --device cuda:0 --launcher \"srun --gpus=1\" --workers 4",
                   "four workers on the nodes of a Slurm cluster");
  line.add_example("rowtune tune --shapes llm --budget 20m", "a long list under a time limit; run it again to go on");
  return line;
}

std::vector<Workload> workloads_from(const CommandLine& line, const ShapeSet& shapes) {
  const auto ops = parse_operations(line.text("op"));
  const auto dtypes = parse_dtypes(line.text("dtype"));
  const Regime regime = parse_regime(line.text("regime"));
  std::vector<Workload> workloads;
  for (Operation op : ops)
    for (Dtype dtype : dtypes)
      for (const Shape& shape : shapes.of(op)) workloads.push_back(Workload::of(op, dtype, shape, regime));
  return workloads;
}

TuneSettings settings_from(const CommandLine& line, const ShapeSet& shapes) {
  TuneSettings settings;
  if (line.has("budget"))
    settings.budget_seconds = parse_duration(line.text("budget"));
  else if (shapes.is_quick())
    settings.budget_seconds = quick_budget_seconds;
  settings.strategy = line.text("strategy");
  make_strategy(settings.strategy, {}, {});  // an unknown name is refused before anything is opened
  settings.strategy_options.seed = line.get<std::uint64_t>("seed");
  if (line.has("evaluations")) {
    settings.strategy_options.evaluations = line.get<int>("evaluations");
    if (*settings.strategy_options.evaluations < 1)
      throw UsageError("rowtune tune: --evaluations must be at least 1; see: rowtune help tune");
    if (settings.strategy != "random" && settings.strategy != "auto")
      throw UsageError("rowtune tune: --evaluations goes with --strategy random or auto; see: rowtune help tune");
  }
  settings.finals = !line.get<bool>("no-final");
  settings.energy = parse_objective(line.text("objective")) != Objective::time;
  settings.same_unit = line.get<bool>("same-unit");
  return settings;
}

std::vector<WorkerSettings> workers_from(const CommandLine& line, std::string* why) {
  WorkerSettings settings;
  settings.timeout_seconds = parse_duration(line.text("timeout"));
  if (line.has("launcher")) settings.launcher = split_words(line.text("launcher"));
  const int workers = line.get<int>("workers");
  if (workers < 1) throw UsageError("rowtune tune: --workers must be at least 1; see: rowtune help tune");
  if (workers > 1 && settings.launcher.empty())
    throw UsageError("rowtune tune: --workers goes with --launcher, which gives each a device; see: rowtune help tune");
  std::vector<WorkerSettings> all;
  for (const std::string& id : device_ids(line.text("device"))) {
    settings.device = id;
    if (settings.launcher.empty())  // a device that is not here is refused with this program's own words
      settings.device = open_device(id, why)->info().id;
    all.insert(all.end(), static_cast<std::size_t>(workers), settings);
  }
  return all;
}

void add_winners(Winners& winners, Winners more) {
  const auto append = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  append(winners.rows, more.rows);
  append(winners.without_winner, more.without_winner);
  append(winners.failures, more.failures);
  append(winners.energies, more.energies);
}

std::string limits_of(const DeviceInfo& device) {
  std::string text =
      fmt::format("{} {}", device.units, device.kind == DeviceKind::cuda ? "multiprocessors" : "threads");
  if (device.cache_bytes > 0) text += fmt::format(", {} cache", format_bytes(static_cast<double>(device.cache_bytes)));
  if (device.memory_bytes > 0)
    text += fmt::format(", {} memory", format_bytes(static_cast<double>(device.memory_bytes)));
  if (device.peak_gbps > 0) text += fmt::format(" at {:.0f} GB/s peak", device.peak_gbps);
  return text;
}

/// Configs that the strategy will measure, about.
std::size_t expected_of(const Plan& plan, const TuneSettings& settings) {
  std::size_t sum = 0;
  for (const PlannedWorkload& planned : plan.workloads) {
    const std::size_t expected =
        make_strategy(settings.strategy, planned.configs, settings.strategy_options)->expected();
    sum += std::min(planned.missing(), expected - std::min(expected, planned.recorded.size()));
  }
  return sum;
}

/// What is about to happen, for whoever waits for it.
std::string opening_sheet(const WorkerGroup& group, const std::string& why, const TuneSettings& settings,
                          const ShapeSet& shapes, const std::string& database) {
  const DeviceInfo& info = group.devices.front()->info();
  const Plan& plan = group.plan;
  const auto copies = static_cast<std::size_t>(
      std::count_if(plan.workloads.begin(), plan.workloads.end(),
                    [](const PlannedWorkload& planned) { return planned.workload.op == Operation::copy; }));
  const std::size_t missing = expected_of(plan, settings);
  // A config takes what its samples take, a tenth of a second or so; a workload, its buffers and its final besides.
  const double each = info.kind == DeviceKind::cuda ? 0.06 : 0.12;
  const double estimate =
      (each * static_cast<double>(missing) + (missing > 0 ? 1.0 * static_cast<double>(plan.workloads.size()) : 0)) /
      static_cast<double>(group.devices.size());
  std::string time = fmt::format("about {}", format_duration(estimate));
  if (settings.budget_seconds)
    time =
        estimate > *settings.budget_seconds
            ? fmt::format("{}; all of it would take about {}", format_duration(*settings.budget_seconds),
                          format_duration(estimate))
            : fmt::format("about {}, at most {}", format_duration(estimate), format_duration(*settings.budget_seconds));
  std::vector<std::string> ids;
  for (const auto& device : group.devices) ids.push_back(device->info().id);
  std::string text = fmt::format("rowtune {} tunes on {}: {}\n", rowtune_version(), fmt::join(ids, ", "), info.model);
  if (!why.empty()) text += fmt::format("  chosen     {}\n", why);
  text += fmt::format("  limits     {}\n", limits_of(info));
  text += fmt::format("  workloads  {} of {}, and {} copies, their ceilings\n", plan.workloads.size() - copies,
                      shapes.description(), copies);
  const std::string still =
      plan.missing() == plan.configs() ? "all still to measure" : fmt::format("{} still to measure", plan.missing());
  text += fmt::format("  configs    {}, {}; results go to {}\n", plan.configs(), still, database);
  if (settings.strategy != "exhaustive")
    text += fmt::format("  strategy   {}: about {} of them\n", settings.strategy, missing);
  text += fmt::format("  time       {}\n", time);
  text += "Ctrl-C ends it cleanly: results are saved as they come, and the same command goes on from there.\n";
  return text;
}

}  // namespace

int tune_command(const Arguments& arguments) {
  CommandLine line = describe();
  if (!line.parse(arguments)) return exit_done;
  const bool quiet = line.get<bool>("quiet");
  const ShapeSet shapes = ShapeSet::parse(line.text("shapes"));
  const std::vector<Workload> workloads = workloads_from(line, shapes);
  const TuneSettings settings = settings_from(line, shapes);
  const Format format = parse_format(line.text("format"));

  std::string why;
  std::vector<WorkerGroup> groups = start_workers(workers_from(line, &why));
  TuneReport report;
  Winners winners;
  const InterruptGuard interrupt;  // to the end: a late signal must not cost the last words
  {
    db::Database database = db::Database::open(line.database(), db::Database::Mode::read_write);
    for (WorkerGroup& group : groups) {
      const WorkerDevice& device = *group.devices.front();
      group.plan = make_plan(workloads, device, Spaces::of(device.info()), database, settings.same_unit);
      if (!quiet) tell(opening_sheet(group, why, settings, shapes, line.database()));
    }
    ConsoleProgress progress(quiet, stderr_is_terminal());
    report = tune_with(groups, line.database(), settings, progress, interrupt.requested());
    for (const WorkerGroup& group : groups)
      add_winners(winners, winners_of(group.plan, group.devices.front()->info(), database));
  }
  if (!quiet) tell(closing_words(report, winners, line.database()));
  if (!winners.rows.empty() || format != Format::table) print(best_sheet(winners.rows, false), format);
  const Objective objective = parse_objective(line.text("objective"));
  if (objective != Objective::time && !winners.energies.empty())
    print(energy_sheet(winners.energies, objective, 1), format);
  if (report.interrupted) return exit_interrupted;
  return winners.without_winner.empty() || report.out_of_budget ? exit_done : exit_failed;
}

}  // namespace rowtune
