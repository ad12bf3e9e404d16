// rowtune best: the best configs of what was tuned.

#include <fmt/format.h>

#include <algorithm>

#include "db/database.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/winners.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;

constexpr int samples_of_an_interval = 6;  ///< fewer give no 95 % interval of a median

CommandLine describe() {
  CommandLine line("best", "best [--op OP] [--dtype DTYPE] [--shape RxC] [options]",
                   "Shows the best configs in the database: time with its 95 % interval, bandwidth, fraction of what a "
                   "copy of the\nsame bytes reaches, gain over the base config, and how many configs tie with it.");
  line.add("Options")("op", po::value<std::string>()->value_name("OP"), "only this operation")(
      "dtype", po::value<std::string>()->value_name("DTYPE"), "only this dtype")(
      "shape", po::value<std::string>()->value_name("RxC"), "only this shape")(
      "regime", po::value<std::string>()->default_value("cold")->value_name("REGIME"), "cold, warm, overlapped or all")(
      "top", po::value<int>()->default_value(1)->value_name("N"), "the N best configs of each workload")(
      "max-error", po::value<double>()->value_name("ULPS"),
      "only configs whose largest error is at most this, in ulps of the dtype")(
      "device-model", po::value<std::string>()->value_name("MODEL"), "only this model, as `rowtune devices` names it");
  line.add("Options")("objective", po::value<std::string>()->default_value("time")->value_name("WHAT"),
                      "time, energy (joules per launch) or edp (joules x time)")(
      "unit", po::value<std::string>()->value_name("UUID"),
      "only what was measured on this very device, not on others of its model");
  line.add_database();
  line.add_format();
  line.add_example("rowtune best", "the winner of everything that was tuned");
  line.add_example("rowtune best --op softmax --dtype bf16 --shape 256x1000 --top 5", "the five best, ties marked");
  line.add_example("rowtune best --op layernorm --max-error 1 --format csv", "the fastest that are also accurate");
  return line;
}

db::BestQuery query_from(const CommandLine& line) {
  db::BestQuery query;
  if (line.has("op")) query.op = parse_operation(line.text("op"));
  if (line.has("dtype")) query.dtype = parse_dtype(line.text("dtype"));
  if (line.has("shape")) query.shape = parse_shape(line.text("shape"));
  if (line.text("regime") != "all") query.regime = parse_regime(line.text("regime"));
  if (line.has("device-model")) query.device_model = line.text("device-model");
  if (line.has("max-error")) {
    query.max_error_ulp = line.get<double>("max-error");
    if (!(*query.max_error_ulp > 0)) throw UsageError("rowtune best: --max-error must be above 0 ulps");
  }
  if (line.has("unit")) query.uuid = line.text("unit");
  query.top = line.get<int>("top");
  if (query.top < 1) throw UsageError("rowtune best: --top must be at least 1");
  return query;
}

/// What was asked for, as words that are options too.
std::string asked_for(const CommandLine& line) {
  std::string text;
  for (const char* option : {"op", "dtype", "shape", "device-model"})
    if (line.has(option)) text += fmt::format(" {}", line.text(option));
  if (line.given("regime")) text += fmt::format(" {}", line.text("regime"));
  if (line.has("max-error")) text += fmt::format(" within {} ulp", line.get<double>("max-error"));
  return text;
}

std::string how_to_tune(const CommandLine& line) {
  std::string text = "rowtune tune";
  if (line.has("op")) text += fmt::format(" --op {}", line.text("op"));
  if (line.has("dtype")) text += fmt::format(" --dtype {}", line.text("dtype"));
  if (line.has("shape")) text += fmt::format(" --shapes {}", line.text("shape"));
  if (line.given("db")) text += fmt::format(" --db {}", line.database());
  return text;
}

}  // namespace

int best_command(const Arguments& arguments) {
  CommandLine line = describe();
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const db::BestQuery query = query_from(line);
  const db::Database database = db::Database::open(line.database(), db::Database::Mode::read_only);
  if (const Objective objective = parse_objective(line.text("objective")); objective != Objective::time) {
    const std::vector<db::EnergyRow> energies = database.energy(query);
    if (energies.empty())
      throw NotFoundError(
          fmt::format("{} holds no energies for{}; they are measured by: {} --objective {}, on GPUs "
                      "whose NVML has an energy counter",
                      line.database(), asked_for(line).empty() ? " anything" : asked_for(line), how_to_tune(line),
                      line.text("objective")));
    print(energy_sheet(energies, objective, query.top), format);
    return exit_done;
  }
  const std::vector<db::BestRow> rows = database.best(query);
  if (rows.empty())
    throw NotFoundError(fmt::format("nothing tuned for{} in {}; tune it with: {}",
                                    asked_for(line).empty() ? " anything" : asked_for(line), line.database(),
                                    how_to_tune(line)));
  print(best_sheet(rows, query.top > 1, database.baselines(query)), format);
  const auto few = std::count_if(rows.begin(), rows.end(), [](const db::BestRow& row) {
    return row.time_us && row.sample_count < samples_of_an_interval;
  });
  if (few > 0 && format == Format::table)
    tell(
        fmt::format("{} of these were clearly beaten and have fewer than {} samples: low and high are their range, not "
                    "a 95 % interval\n",
                    few, samples_of_an_interval));
  return exit_done;
}

}  // namespace rowtune
