// rowtune space: the configs of a workload on a device, and what each constraint removed.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kernels/device.hpp"
#include "kernels/space.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"

namespace rowtune {
namespace {

using reports::Cell;
using reports::Sheet;
using reports::Style;

std::string table_text(const Sheet& sheet) {
  std::ostringstream out;
  reports::print_table(sheet, out);
  return out.str();
}

Sheet config_sheet(const Space& space, const DeviceInfo& device) {
  using C = Config;
  const auto axis = [](int (C::*get)() const) {
    return [get](const C& config) { return Cell(std::int64_t{(config.*get)()}); };
  };
  const std::vector<reports::Field<C>> fields{
      {{"config", "", "", "algorithm and axes"}, [](const C& c) { return Cell(c.name()); }},
      {{"algorithm", "", "", "its first part", Style::text, true}, [](const C& c) { return Cell(c.algorithm); }},
      {{"block_size", "block", "", "threads of a block", Style::count, true}, axis(&C::block_size)},
      {{"rows_per_warp", "", "", "rows a warp works on", Style::count, true}, axis(&C::rows_per_warp)},
      {{"vector_width", "", "", "elements per access", Style::count, true}, axis(&C::vector_width)},
      {{"split_count", "", "", "blocks that share a row", Style::count, true}, axis(&C::split_count)},
      {{"eligible", "may win", "", "unsafe forms may not", Style::flag},
       [&device](const C& c) { return Cell(is_eligible(device.kind, c)); }},
      {{"base", "", "", "the default", Style::flag}, [&space](const C& c) { return Cell(c == space.base); }}};
  return reports::sheet_of(fields, space.configs);
}

/// The axes as an object by letter, which no column can hold.
std::string config_json(const Space& space, const DeviceInfo& device) {
  auto list = nlohmann::ordered_json::parse(reports::json_of(config_sheet(space, device)));
  for (std::size_t i = 0; i < space.configs.size(); ++i) {
    list[i]["axes"] = nlohmann::ordered_json::object();
    for (const AxisValue& axis : space.configs[i].axes) list[i]["axes"][std::string(1, axis.letter)] = axis.value;
  }
  return list.dump(2) + "\n";
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
  Sheet algorithms;
  algorithms.heads = {column("algorithm"), column("configs", "", Style::count), column("may win", "", Style::flag),
                      column("what it does")};
  for (const Algorithm& algorithm : algorithms_of(device.kind)) {
    const std::int64_t count = std::count_if(space.configs.begin(), space.configs.end(),
                                             [&](const Config& config) { return config.algorithm == algorithm.name; });
    if (count > 0) algorithms.rows.push_back({algorithm.name, count, algorithm.eligible, algorithm.summary});
  }
  text += table_text(algorithms);

  text += "\naxes\n";
  for (const Algorithm& algorithm : algorithms_of(device.kind)) {
    if (std::none_of(algorithms.rows.begin(), algorithms.rows.end(),
                     [&](const auto& row) { return row[0] == Cell(algorithm.name); }))
      continue;
    text += fmt::format("  {}\n", algorithm.name);
    for (const Axis& axis : algorithm.axes(workload, device))
      text += fmt::format("    {}  {}: {} ({})\n", axis.letter, axis.name, fmt::join(axis.values, ", "), axis.meaning);
  }

  text += fmt::format("\n{} points considered", space.considered);
  if (space.removed.empty()) return text + "; no constraint removed any\n";
  text += "; constraints removed\n";
  Sheet removed;
  removed.heads = {column("points", "", Style::count), column("constraint"), column("meaning")};
  for (const auto& [name, points] : space.removed)
    removed.rows.push_back({points, name, meaning_of(device.kind, name)});
  return text + table_text(removed);
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
  const DeviceInfo device = open_device(line.text("device"))->info();
  const Space space = enumerate_space(workload, device);
  if (format == Format::json)
    print(config_json(space, device));
  else if (format == Format::csv || line.get<bool>("list"))
    print(config_sheet(space, device), format);
  else
    print(summary(space, workload, device));
  return exit_done;
}

}  // namespace rowtune
