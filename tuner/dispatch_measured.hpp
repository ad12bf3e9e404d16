#pragma once
// What the database says of the workloads that a dispatch table is built from, grouped by table.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/dispatch_table.hpp"

namespace rowtune {

/// A workload: its eligible configs and their times.
struct MeasuredWorkload {
  Shape shape;
  int alignment = 16;
  std::map<std::string, db::BestRow> configs;  ///< that were right and may be chosen, by name
  std::set<std::string> failed;
  std::string best, base;  ///< `base` is empty when it was not measured
  bool swept = true;       ///< false: a place off the grid, of which single configs were measured (dispatch_refine.hpp)

  double best_us() const { return configs.at(best).time_us.value(); }
  std::optional<double> time_of(const std::string& config) const;
};

/// A config's time / the best time - 1 where it was measured; infinite where it failed.
std::optional<double> slowdown_at(const MeasuredWorkload& workload, const std::string& config);

/// What becomes one table.
struct MeasuredTable {
  DispatchTable head;                ///< without kernels, entries and regions
  std::optional<DeviceInfo> device;  ///< with the limits by which a config is legal; none for other devices than CUDA
  std::vector<MeasuredWorkload> workloads;  ///< sorted by cols, rows, alignment
};

/// Configs that a workload which nobody swept needs to have before it counts: fewer say little of what is best there,
/// and one alone would be.
constexpr std::size_t least_of_unswept = 3;

/// Of the workloads that are `unswept`, those of which enough is known are added to the table of the others.
std::vector<MeasuredTable> measured_tables(const std::vector<db::BestRow>& leaderboard,
                                           const std::set<db::DeviceWorkload>& unswept = {});

MeasuredTable only_swept(const MeasuredTable& measured);

/// The kernels, entries and regions for these workloads. Those that are not swept add to what is known between the
/// others, and nothing else: no entry, no kernel that has to be there.
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
