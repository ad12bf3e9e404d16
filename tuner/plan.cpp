#include "tuner/plan.hpp"

#include <algorithm>
#include <optional>

#include "kernels/errors.hpp"
#include "tuner/identity.hpp"

namespace rowtune {
namespace {

PlannedWorkload planned_of(const Workload& workload, std::vector<Config> configs, const Config& base,
                           const Spaces& spaces) {
  PlannedWorkload planned;
  planned.workload = workload;
  planned.configs = std::move(configs);
  planned.base = static_cast<std::size_t>(
      std::distance(planned.configs.begin(), std::find(planned.configs.begin(), planned.configs.end(), base)));
  for (const Config& config : planned.configs) planned.eligible.push_back(spaces.eligible(config));
  return planned;
}

PlannedWorkload plan_workload(const Workload& workload, bool only_ceiling, const Device& device, const Spaces& spaces,
                              db::Database& database, const std::set<db::DeviceWorkload>& unswept, bool same_unit) {
  Space space = spaces.enumerate(workload);
  PlannedWorkload planned = planned_of(workload, std::move(space.configs), space.base, spaces);
  planned.only_ceiling = only_ceiling;
  const db::MeasurementKey key = key_of(device, workload);
  const auto unit = same_unit ? std::optional(device.info().uuid) : std::nullopt;
  for (std::string& name : database.recorded_configs(key, unit)) planned.recorded.insert(std::move(name));
  planned.swept = !unswept.contains({key.device_model, key.device_limits, workload});
  database.begin_sweep(key, static_cast<std::int64_t>(planned.configs.size()), space.base.name());
  return planned;
}

}  // namespace

Spaces Spaces::of(const DeviceInfo& device) {
  return {[&device](const Workload& workload) { return enumerate_space(workload, device); },
          [kind = device.kind](const Config& config) { return is_eligible(kind, config); },
          [&device](const Workload& workload, const std::string& name) {
            try {
              parse_config(name, workload, device);
              return true;
            } catch (const UsageError&) {
              return false;
            }
          }};
}

std::size_t PlannedWorkload::missing() const {
  return static_cast<std::size_t>(std::count_if(
      configs.begin(), configs.end(), [this](const Config& config) { return !recorded.contains(config.name()); }));
}

std::size_t Plan::configs() const {
  std::size_t sum = 0;
  for (const auto& planned : workloads) sum += planned.configs.size();
  return sum;
}

std::size_t Plan::missing() const {
  std::size_t sum = 0;
  for (const auto& planned : workloads) sum += planned.missing();
  return sum;
}

Plan make_plan(const std::vector<Workload>& workloads, const Device& device, const Spaces& spaces,
               db::Database& database, bool same_unit) {
  std::vector<Workload> copies, others;
  const auto add = [](std::vector<Workload>& list, const Workload& workload) {
    if (std::find(list.begin(), list.end(), workload) == list.end()) list.push_back(workload);
  };
  for (const Workload& workload : workloads) {
    add(copies, ceiling_of(workload));
    add(workload.op == Operation::copy ? copies : others, workload);
  }
  const auto unswept = database.unswept();
  Plan plan;
  for (const Workload& workload : copies) {
    const bool asked_for = std::find(workloads.begin(), workloads.end(), workload) != workloads.end();
    plan.workloads.push_back(plan_workload(workload, !asked_for, device, spaces, database, unswept, same_unit));
  }
  for (const Workload& workload : others)
    plan.workloads.push_back(plan_workload(workload, false, device, spaces, database, unswept, same_unit));
  return plan;
}

Plan make_plan(const std::vector<WantedConfigs>& wanted, const Device& device, const Spaces& spaces,
               db::Database& database) {
  Plan plan;
  for (const auto& [workload, names] : wanted) {
    Space space = spaces.enumerate(workload);
    const auto is_wanted = [&names = names](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::set<std::string> offered;
    for (const Config& config : space.configs) offered.insert(config.name());
    std::erase_if(space.configs,
                  [&](const Config& config) { return config != space.base && !is_wanted(config.name()); });
    for (const std::string& name : names)
      if (!offered.contains(name) && spaces.is_legal && spaces.is_legal(workload, name))
        space.configs.push_back(split_config_name(name));
    PlannedWorkload& planned =
        plan.workloads.emplace_back(planned_of(workload, std::move(space.configs), space.base, spaces));
    const db::MeasurementKey key = key_of(device, workload);
    for (std::string& name : database.recorded_configs(key)) planned.recorded.insert(std::move(name));
    database.begin_sweep(key, std::nullopt, space.base.name());
  }
  return plan;
}

}  // namespace rowtune
