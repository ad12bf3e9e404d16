// rowtune space: the configs of a workload on a device, and what each constraint removed.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/device.hpp"
#include "kernels/space.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/table.hpp"

namespace rowtune {
namespace {

using Cell = nlohmann::ordered_json;

/// The device need not be here: `cuda:0` that is unusable has no limits to enumerate for.
DeviceInfo device_named(const std::string& id) { return open_device(id)->info(); }

Table config_table(const Space& space, const DeviceInfo& device) {
  Table table;
  table.columns = {{"config", "config"},  {"algorithm", "algorithm"}, {"block_size", ""},
                   {"rows_per_warp", ""}, {"vector_width", ""},       {"split_count", ""},
                   {"axes", ""},          {"eligible", "may win"},    {"base", "base"}};
  for (const Config& config : space.configs) {
    Cell axes = Cell::object();
    for (const AxisValue& axis : config.axes) axes[std::string(1, axis.letter)] = axis.value;
    table.rows.push_back({config.name(), config.algorithm, config.block_size(), config.rows_per_warp(),
                          config.vector_width(), config.split_count(), axes, is_eligible(device.kind, config),
                          config == space.base});
  }
  return table;
}

std::string meaning_of(DeviceKind kind, const std::string& constraint) {
  for (const Algorithm& algorithm : algorithms_of(kind))
    for (const Constraint& each : algorithm.constraints)
      if (each.name == constraint) return each.meaning;
  return "";
}

std::string summary(const Space& space, const Workload& workload, const DeviceInfo& device) {
  std::string text = fmt::format("{} on {} ({}): {} configs\nbase: {}\n\n", to_string(workload), device.id,
                                 device.model, space.configs.size(), space.base.name());
  Table algorithms;
  algorithms.columns = {
      {"algorithm", "algorithm"}, {"configs", "configs"}, {"may_win", "may win"}, {"summary", "what it does"}};
  for (const Algorithm& algorithm : algorithms_of(device.kind)) {
    const auto count = std::count_if(space.configs.begin(), space.configs.end(),
                                     [&](const Config& config) { return config.algorithm == algorithm.name; });
    if (count > 0) algorithms.rows.push_back({algorithm.name, count, algorithm.eligible, algorithm.summary});
  }
  text += algorithms.print(Format::table);

  text += "\naxes\n";
  for (const Algorithm& algorithm : algorithms_of(device.kind)) {
    if (std::none_of(algorithms.rows.begin(), algorithms.rows.end(),
                     [&](const auto& row) { return row[0] == algorithm.name; }))
      continue;
    text += fmt::format("  {}\n", algorithm.name);
    for (const Axis& axis : algorithm.axes(workload, device))
      text += fmt::format("    {}  {}: {} ({})\n", axis.letter, axis.name, fmt::join(axis.values, ", "), axis.meaning);
  }

  text += fmt::format("\n{} points considered", space.considered);
  if (space.removed.empty()) return text + "; no constraint removed any\n";
  text += "; constraints removed\n";
  Table removed;
  removed.columns = {{"points", "points"}, {"constraint", "constraint"}, {"meaning", "meaning"}};
  for (const auto& [name, points] : space.removed)
    removed.rows.push_back({points, name, meaning_of(device.kind, name)});
  return text + removed.print(Format::table);
}

}  // namespace

int space_command(const Arguments& arguments) {
  CommandLine line(
      "space", "space --op OP --dtype DTYPE --shape RxC [options]",
      "Shows the search space of a workload: its algorithms, their axes, and what each constraint removed.\n"
      "With --format json or csv, or --list: every config by name.");
  line.add_device("whose limits bound the space: auto, cpu, or cuda:N");
  add_workload_options(line);
  line.add("Options")("list", boost::program_options::bool_switch(), "the configs themselves, as a table");
  line.add_format();
  line.add_example("rowtune space --op softmax --dtype bf16 --shape 4096x1000",
                   "what would be tried, and why not more");
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const Workload workload = workload_from(line);
  const DeviceInfo device = device_named(line.text("device"));
  const Space space = enumerate_space(workload, device);
  if (format == Format::table && !line.get<bool>("list"))
    print(summary(space, workload, device));
  else
    print(config_table(space, device).print(format));
  return exit_done;
}

}  // namespace rowtune
