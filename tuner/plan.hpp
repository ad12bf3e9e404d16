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

  static Spaces of(const DeviceInfo& device);  ///< the tables; `device` must outlive it
};

struct PlannedWorkload {
  Workload workload;
  bool only_ceiling = false;  ///< not asked for: there because others are a fraction of it
  std::vector<Config> configs;
  std::vector<bool> eligible;
  std::size_t base = 0;            ///< index into configs
  std::set<std::string> recorded;  ///< names of configs that the database has

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

}  // namespace rowtune
