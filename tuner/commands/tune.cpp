// rowtune tune: sweeps workloads, records every result, prints the winners.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/identity.hpp"
#include "tuner/interrupt.hpp"
#include "tuner/measure.hpp"
#include "tuner/plan.hpp"
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
  line.add_device("auto (the first usable GPU, else cpu), cpu, or cuda:N");
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
      "evaluations", po::value<int>()->value_name("N"), "random: configs per workload at most")(
      "seed", po::value<std::uint64_t>()->default_value(1)->value_name("N"), "of the order in which configs are tried")(
      "no-final", po::bool_switch(), "no paired final between the best few configs and the base");
  line.add_database();
  line.add_format();
  line.add_quiet();
  line.add_example("rowtune tune", "every operation on the quick shapes, on the best device here");
  line.add_example("rowtune tune --op softmax --dtype bf16 --shapes 4096x1000,64x50000", "two shapes of your own");
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
    if (settings.strategy != "random")
      throw UsageError("rowtune tune: --evaluations goes with --strategy random only; see: rowtune help tune");
  }
  settings.finals = !line.get<bool>("no-final");
  return settings;
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

/// What is about to happen, for whoever waits for it.
std::string opening_sheet(const Device& device, const std::string& why, const Plan& plan, const TuneSettings& settings,
                          const ShapeSet& shapes, const std::string& database) {
  const DeviceInfo& info = device.info();
  const auto copies = static_cast<std::size_t>(
      std::count_if(plan.workloads.begin(), plan.workloads.end(),
                    [](const PlannedWorkload& planned) { return planned.workload.op == Operation::copy; }));
  const std::size_t missing = plan.missing();
  // A config takes what its samples take, a tenth of a second or so; a workload, its buffers and its final besides.
  const double each = info.kind == DeviceKind::cuda ? 0.06 : 0.12;
  const double estimate =
      each * static_cast<double>(missing) + (missing > 0 ? 1.0 * static_cast<double>(plan.workloads.size()) : 0);
  std::string time = fmt::format("about {}", format_duration(estimate));
  if (settings.budget_seconds)
    time =
        estimate > *settings.budget_seconds
            ? fmt::format("{}; all of it would take about {}", format_duration(*settings.budget_seconds),
                          format_duration(estimate))
            : fmt::format("about {}, at most {}", format_duration(estimate), format_duration(*settings.budget_seconds));
  std::string text = fmt::format("rowtune {} tunes on {}: {}\n", rowtune_version(), info.id, info.model);
  if (!why.empty()) text += fmt::format("  chosen     {}\n", why);
  text += fmt::format("  limits     {}\n", limits_of(info));
  text += fmt::format("  workloads  {} of {}, and {} copies, their ceilings\n", plan.workloads.size() - copies,
                      shapes.description(), copies);
  const std::string still =
      missing == plan.configs() ? "all still to measure" : fmt::format("{} still to measure", missing);
  text += fmt::format("  configs    {}, {}; results go to {}\n", plan.configs(), still, database);
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
  const std::unique_ptr<Device> device = open_device(line.text("device"), &why);
  db::Database database = db::Database::open(line.database(), db::Database::Mode::read_write);
  const Plan plan = make_plan(workloads, *device, Spaces::of(device->info()), database);
  if (!quiet) tell(opening_sheet(*device, why, plan, settings, shapes, line.database()));

  TuneReport report;
  {
    InterruptGuard interrupt;
    DeviceMeasurer measurer(*device);
    ConsoleProgress progress(quiet, stderr_is_terminal());
    Tuner tuner(*device, measurer, database, settings, progress, interrupt.requested());
    report = tuner.run(plan);
  }
  const Winners winners = winners_of(plan, device->info(), database);
  if (!quiet) tell(closing_words(report, winners, line.database()));
  if (!winners.rows.empty() || format != Format::table) print(best_sheet(winners.rows, false), format);
  if (report.interrupted) return exit_interrupted;
  return winners.without_winner.empty() || report.out_of_budget ? exit_done : exit_failed;
}

}  // namespace rowtune
