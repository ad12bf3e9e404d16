// rowtune replay: search strategies on recorded spaces, without a device.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "db/database.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/replay.hpp"
#include "tuner/strategy.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;
using reports::Style;

CommandLine describe() {
  CommandLine line("replay", "replay [--strategy NAMES] [--op OPS] [--dtype DTYPES] [options]",
                   "Plays search strategies again and again on spaces that were recorded in full (tune with --strategy "
                   "exhaustive),\nwithout a device, and prints how far their best config is from the best there is "
                   "after how many evaluations.\nRegret: time of the best config found / time of the best in the "
                   "space - 1. A strategy that has ended keeps its regret.");
  line.add("Options")("strategy", po::value<std::string>()->default_value("all")->value_name("NAME,NAME"),
                      fmt::format("all, or some of {}", fmt::join(strategy_names(), ", ")).c_str())(
      "op", po::value<std::string>()->default_value("all")->value_name("OP,OP"),
      "operations: all (but copy), or some by name")(
      "dtype", po::value<std::string>()->default_value("all")->value_name("DTYPE"), "all, or some of f32, f16, bf16")(
      "regime", po::value<std::string>()->default_value("cold")->value_name("REGIME"), "cold, warm or overlapped")(
      "device-model", po::value<std::string>()->value_name("MODEL"), "only this model, as `rowtune devices` names it")(
      "replays", po::value<int>()->default_value(1000)->value_name("N"),
      "how often, each time with another seed and another order of the workloads")(
      "seed", po::value<std::uint64_t>()->default_value(1)->value_name("N"), "of the seeds and orders")(
      "alone", po::bool_switch(), "tune every workload as if it were the first: no hints of similar ones")(
      "only-end", po::bool_switch(), "one line a strategy: where it ends");
  line.add_database();
  line.add_format();
  line.add_example("rowtune replay --only-end", "all strategies, where they end");
  line.add_example("rowtune replay --strategy auto --op softmax --replays 5000", "regret against evaluations");
  return line;
}

std::vector<std::string> strategies_from(const CommandLine& line) {
  const std::string text = line.text("strategy");
  if (text == "all") return strategy_names();
  std::vector<std::string> names;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    names.push_back(text.substr(at, comma - at));
    make_strategy(names.back(), {}, {});  // refuses an unknown name
    at = comma + 1;
  }
  return names;
}

std::vector<RecordedSpace> spaces_from(const CommandLine& line) {
  const db::Database database = db::Database::open(line.database(), db::Database::Mode::read_only);
  std::vector<db::BestRow> rows;
  std::string model;
  for (Operation op : parse_operations(line.text("op")))
    for (Dtype dtype : parse_dtypes(line.text("dtype"))) {
      if (op == Operation::copy && !line.given("op")) continue;
      db::BestQuery query;
      if (line.has("device-model")) query.device_model = line.text("device-model");
      query.op = op;
      query.dtype = dtype;
      query.regime = parse_regime(line.text("regime"));
      std::map<Workload, bool> full;
      for (const db::Coverage& c : database.coverage(query)) {
        const Workload workload{op, dtype, Shape{c.rows, c.cols, c.ld, c.off}, parse_regime(c.regime),
                                parse_options(c.options)};
        full[workload] = c.space_size && c.measured >= *c.space_size;
        if (model.empty()) model = c.device_model + c.device_limits;
        if (model != c.device_model + c.device_limits)
          throw UsageError(
              fmt::format("{} holds results of several devices; say which with --device-model", line.database()));
      }
      for (db::BestRow& row : database.leaderboard(query))
        if (full[row.workload()]) rows.push_back(std::move(row));
    }
  auto spaces = recorded_spaces(rows);
  if (spaces.empty())
    throw NotFoundError(
        fmt::format("{} holds no workload of these whose space was measured in full; record some with: rowtune tune "
                    "--strategy exhaustive",
                    line.database()));
  return spaces;
}

}  // namespace

int replay_command(const Arguments& arguments) {
  CommandLine line = describe();
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  ReplaySettings settings;
  settings.replays = line.get<int>("replays");
  if (settings.replays < 1) throw UsageError("rowtune replay: --replays must be at least 1; see: rowtune help replay");
  settings.seed = line.get<std::uint64_t>("seed");
  settings.hints = !line.get<bool>("alone");
  const auto strategies = strategies_from(line);
  const auto spaces = spaces_from(line);

  reports::Sheet sheet;
  reports::Head configs_evaluated = column("evaluated", "configs");
  configs_evaluated.style = Style::rate;
  sheet.heads = {column("workloads", "", Style::count),
                 column("replays", "", Style::count),
                 column("strategy"),
                 column("evaluations", "at"),
                 configs_evaluated,
                 column("share", "of the space", Style::fraction),
                 column("median_regret", "median regret", Style::fraction),
                 column("mean_regret", "mean", Style::fraction),
                 column("p90_regret", "90 %", Style::fraction),
                 column("worst_regret", "worst", Style::fraction),
                 column("within_1_percent", "within 1 %", Style::fraction)};
  for (const std::string& name : strategies) {
    settings.strategy = name;
    for (const ReplayPoint& point : replay(spaces, settings)) {
      if (line.get<bool>("only-end") && point.evaluations != 0) continue;
      sheet.rows.push_back({static_cast<std::int64_t>(spaces.size()), std::int64_t{settings.replays}, name,
                            point.evaluations == 0 ? std::string("the end") : std::to_string(point.evaluations),
                            point.evaluated, point.share, point.median_regret, point.mean_regret, point.p90_regret,
                            point.worst_regret, point.within_1_percent});
    }
  }
  print(sheet, format);
  return exit_done;
}

}  // namespace rowtune
