#include "tuner/plan.hpp"

#include <algorithm>
#include <optional>

#include "tuner/identity.hpp"

namespace rowtune {
namespace {

PlannedWorkload plan_workload(const Workload& workload, bool only_ceiling, const Device& device, const Spaces& spaces,
                              db::Database& database, bool same_unit) {
  PlannedWorkload planned;
  planned.workload = workload;
  planned.only_ceiling = only_ceiling;
  Space space = spaces.enumerate(workload);
  planned.configs = std::move(space.configs);
  planned.base = static_cast<std::size_t>(
      std::distance(planned.configs.begin(), std::find(planned.configs.begin(), planned.configs.end(), space.base)));
  for (const Config& config : planned.configs) planned.eligible.push_back(spaces.eligible(config));

  const db::MeasurementKey key = key_of(device, workload);
  const auto unit = same_unit ? std::optional(device.info().uuid) : std::nullopt;
  for (std::string& name : database.recorded_configs(key, unit)) planned.recorded.insert(std::move(name));
  database.begin_sweep(key, static_cast<std::int64_t>(planned.configs.size()), space.base.name());
  return planned;
}

}  // namespace

Spaces Spaces::of(const DeviceInfo& device) {
  return {[&device](const Workload& workload) { return enumerate_space(workload, device); },
          [kind = device.kind](const Config& config) { return is_eligible(kind, config); }};
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
  Plan plan;
  for (const Workload& workload : copies) {
    const bool asked_for = std::find(workloads.begin(), workloads.end(), workload) != workloads.end();
    plan.workloads.push_back(plan_workload(workload, !asked_for, device, spaces, database, same_unit));
  }
  for (const Workload& workload : others)
    plan.workloads.push_back(plan_workload(workload, false, device, spaces, database, same_unit));
  return plan;
}

}  // namespace rowtune
