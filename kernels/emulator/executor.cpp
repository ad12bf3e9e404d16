#include "kernels/emulator/executor.hpp"

#include <algorithm>
#include <stdexcept>

namespace rowtune::emulator {
namespace {

// A small device, so that persistent blocks have several rows each, also in a test of five rows.
constexpr int blocks_that_fit = 2;  ///< on a multiprocessor
int units_for(const cuda::Launch& how) { return how.blocks_per_unit > 0 ? 1 : 3; }

}  // namespace

void Executor::run(const Workload& workload, const Config& config, RowArgs args, const std::vector<Region>& regions,
                   std::uint64_t order, const std::vector<std::int64_t>& only) {
  const cuda::Plan plan = cuda::plan_kernel(workload, config);
  const Instantiation* kernel = instantiation_of(plan);
  if (!kernel) throw std::logic_error("this kernel is not compiled into the test: " + plan.source);
  machine_.reseed(order);
  machine_.memory().clear();
  for (const Region& region : regions) machine_.memory().add(region);
  if (plan.workspace_bytes > 0) args.workspace = workspace_for(plan);
  try {
    for (std::size_t i = 0; i < plan.launches.size(); ++i)
      launch(plan, plan.launches[i], config.name(), only,
             [&, function = i == 0 ? kernel->first : kernel->second] { function(args); });
  } catch (...) {
    exchange_.clear();  // a launch that broke off leaves its counters anyhow
    throw;
  }
}

void Executor::launch(const cuda::Plan& plan, const cuda::Launch& how, const std::string& config,
                      const std::vector<std::int64_t>& only, const std::function<void()>& kernel) {
  Grid grid;
  grid.kernel = config + " " + how.function;
  grid.blocks = how.blocks;
  if (how.resident) {
    const auto resident = dispatch::resident_blocks(plan.split, how.blocks_per_unit, blocks_that_fit, units_for(how));
    grid.blocks = std::min<std::int64_t>(grid.blocks, std::max<std::int64_t>(plan.split, resident));
  }
  grid.threads = plan.block;
  grid.cluster = how.cluster;
  grid.dynamic_shared = how.dynamic_shared;
  grid.resident = how.resident && plan.split > 1;  // those whose blocks wait for each other
  grid.only = only;
  machine_.run(grid, kernel);
}

/// Splits: one workspace for all configs and launches, zeroed once, as exchange.cuh promises. Two launches: what the
/// first stored is all that the second may load.
void* Executor::workspace_for(const cuda::Plan& plan) {
  const bool exchange = plan.launches.size() == 1;
  auto& buffer = exchange ? exchange_ : parts_;
  if (static_cast<std::int64_t>(buffer.size()) * 8 < plan.workspace_bytes)
    buffer.assign(static_cast<std::size_t>(plan.workspace_bytes / 4), 0);
  auto* base = reinterpret_cast<std::byte*>(buffer.data());
  machine_.memory().add({"workspace", base, 1, plan.workspace_bytes / 4, plan.workspace_bytes / 4, 4,
                         exchange ? Use::input_output : Use::output});
  return base;
}

}  // namespace rowtune::emulator
