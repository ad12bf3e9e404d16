#pragma once
// What the database says of the workloads that a dispatch table is built from, grouped by table.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/dispatch_table.hpp"

namespace rowtune {

/// A tuned workload: its eligible configs and their times.
struct MeasuredWorkload {
  Shape shape;
  int alignment = 16;
  std::map<std::string, db::BestRow> configs;  ///< that were right and may be chosen, by name
  std::string best, base;                      ///< `base` is empty when it was not measured

  double best_us() const { return configs.at(best).time_us.value(); }
  std::optional<double> time_of(const std::string& config) const;
};

/// What becomes one table.
struct MeasuredTable {
  DispatchTable head;                ///< without kernels, entries and regions
  std::optional<DeviceInfo> device;  ///< with the limits by which a config is legal; none for other devices than CUDA
  std::vector<MeasuredWorkload> workloads;  ///< sorted by cols, rows, alignment
};

std::vector<MeasuredTable> measured_tables(const std::vector<db::BestRow>& leaderboard);

/// The kernels, entries and regions for these workloads.
DispatchTable build_table(const MeasuredTable& measured, const DispatchSettings& settings);

/// A kernel that a config needs for a shape; none where no table may hold it.
std::optional<DispatchKernel> kernel_of(const MeasuredTable& table, const std::string& config, const Shape& shape);

/// Which of the candidates serve every workload with the fewest kernels. candidates[w]: kernels that may serve workload
/// w, with their regret. Free kernels count nothing. Returns for each workload an index into its candidates. Exact
/// where `budget` steps of the search are enough, greedy beyond; of equally few kernels those with the least regret.
struct KernelChoice {
  DispatchKernel kernel;
  double regret = 0;
  std::string config;
};
std::vector<std::size_t> fewest_kernels(const std::vector<std::vector<KernelChoice>>& candidates, long budget = 20'000);

/// Adds the regions: which kernel for shapes that were not tuned.
void add_regions(const MeasuredTable& measured, const DispatchSettings& settings, DispatchTable& table);

}  // namespace rowtune
