#include "kernels/space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/algorithms.hpp"

namespace rowtune {
namespace {

bool serves(const Algorithm& algorithm, Operation op) {
  return std::find(algorithm.operations.begin(), algorithm.operations.end(), op) != algorithm.operations.end();
}

/// Calls visit for every point of the grid of axes, last axis fastest.
void for_each_point(const std::string& algorithm, const std::vector<Axis>& axes,
                    const std::function<void(const Config&)>& visit) {
  Config config{algorithm, {}};
  for (const auto& axis : axes) {
    if (axis.values.empty()) return;
    config.axes.push_back({axis.letter, axis.values.front()});
  }
  std::vector<std::size_t> index(axes.size(), 0);
  while (true) {
    visit(config);
    std::size_t i = axes.size();
    while (i > 0 && index[i - 1] + 1 == axes[i - 1].values.size()) {
      index[i - 1] = 0;
      config.axes[i - 1].value = axes[i - 1].values[0];
      --i;
    }
    if (i == 0) return;
    ++index[i - 1];
    config.axes[i - 1].value = axes[i - 1].values[index[i - 1]];
  }
}

}  // namespace

std::string to_string(DeviceKind kind) { return kind == DeviceKind::cpu ? "cpu" : "cuda"; }

const std::vector<Algorithm>& algorithms_of(DeviceKind kind) {
  static const std::vector<Algorithm> cpu = cpu_algorithms();
  static const std::vector<Algorithm> cuda = cuda_algorithms();
  return kind == DeviceKind::cpu ? cpu : cuda;
}

const Algorithm& algorithm_named(DeviceKind kind, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& algorithm : algorithms_of(kind)) {
    if (algorithm.name == name) return algorithm;
    names.push_back(algorithm.name);
  }
  throw UsageError(fmt::format("no algorithm '{}' on {}; there are {}", name, to_string(kind), fmt::join(names, ", ")));
}

bool is_eligible(DeviceKind kind, const Config& config) {
  const bool onepass_variance = kind == DeviceKind::cuda && config.get('w', 3) == 1;
  return algorithm_named(kind, config.algorithm).eligible && !onepass_variance;
}

Space enumerate_space(const Workload& workload, const DeviceInfo& device) {
  Space space;
  for (const auto& algorithm : algorithms_of(device.kind)) {
    if (!serves(algorithm, workload.op)) continue;
    for_each_point(algorithm.name, algorithm.axes(workload, device), [&](const Config& config) {
      ++space.considered;
      for (const auto& constraint : algorithm.constraints) {
        if (constraint.holds(workload, device, config)) continue;
        auto at = std::find_if(space.removed.begin(), space.removed.end(),
                               [&](auto& r) { return r.first == constraint.name; });
        if (at == space.removed.end()) at = space.removed.insert(at, {constraint.name, 0});
        ++at->second;
        return;
      }
      space.configs.push_back(config);
    });
  }
  space.base = base_config(workload, device);
  if (std::find(space.configs.begin(), space.configs.end(), space.base) == space.configs.end())
    space.configs.push_back(space.base);
  return space;
}

Config parse_config(std::string_view name, const Workload& workload, const DeviceInfo& device) {
  const Config given = split_config_name(name);
  const Algorithm& algorithm = algorithm_named(device.kind, given.algorithm);
  if (!serves(algorithm, workload.op))
    throw UsageError(fmt::format("algorithm '{}' does not do {}", algorithm.name, to_string(workload.op)));
  const auto axes = algorithm.axes(workload, device);
  std::string order;
  for (const auto& axis : axes) order += fmt::format(".{}N", axis.letter);
  if (!std::equal(axes.begin(), axes.end(), given.axes.begin(), given.axes.end(),
                  [](const Axis& a, const AxisValue& v) { return a.letter == v.letter; }))
    throw UsageError(fmt::format("config '{}': the axes of {} for {} are, in this order, {}{}", name, algorithm.name,
                                 to_string(workload.op), algorithm.name, order));
  for (const auto& constraint : algorithm.constraints)
    if (constraint.kind == Constraint::Kind::must && !constraint.holds(workload, device, given))
      throw UsageError(fmt::format("config '{}' is not legal for {} on {}: {} ({})", name, to_string(workload),
                                   device.id, constraint.name, constraint.meaning));
  return given;
}

}  // namespace rowtune
