#pragma once
// What a sweep covers: every workload with its space, the ceilings that its results are a fraction of, and what the
// database holds already.

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "db/database.hpp"
#include "kernels/device.hpp"
#include "kernels/space.hpp"

namespace rowtune {

/// Where spaces come from: the kernels' tables, or a test's own.
struct Spaces {
  std::function<Space(const Workload&)> enumerate;
  std::function<bool(const Config&)> eligible;

  /// Whether a config by its name can run at all, though no space may have it. Absent: what no space has is not legal.
  std::function<bool(const Workload&, const std::string&)> is_legal = {};

  static Spaces of(const DeviceInfo& device);  ///< the tables; `device` must outlive it
};

struct PlannedWorkload {
  Workload workload;
  bool only_ceiling = false;  ///< not asked for: there because others are a fraction of it
  std::vector<Config> configs;
  std::vector<bool> eligible;
  std::size_t base = 0;            ///< index into configs
  std::set<std::string> recorded;  ///< names of configs that the database has
  bool swept = true;               ///< false: these were measured one by one, before anybody set out to sweep

  std::size_t missing() const;
};

struct Plan {
  std::vector<PlannedWorkload> workloads;  ///< ceilings first, then in the order asked for

  std::size_t configs() const;
  std::size_t missing() const;
};

/// Adds the ceiling of every workload, and makes each of the sweeps the current one of the database.
/// `same_unit`: what was measured on other units of this model does not count.
Plan make_plan(const std::vector<Workload>& workloads, const Device& device, const Spaces& spaces,
               db::Database& database, bool same_unit = false);

/// Some configs of a workload, by name.
struct WantedConfigs {
  Workload workload;
  std::vector<std::string> configs;
};

/// Just these and the bases: no ceilings, and no claim to sweep a space. What is not legal is left out.
Plan make_plan(const std::vector<WantedConfigs>& wanted, const Device& device, const Spaces& spaces,
               db::Database& database);

}  // namespace rowtune
