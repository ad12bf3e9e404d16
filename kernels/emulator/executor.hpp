#pragma once
// Runs a config of a workload on the emulated machine: plans it, finds its compiled kernel, gives it a workspace.

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/plan.hpp"
#include "kernels/emulator/instantiations.hpp"
#include "kernels/emulator/machine.hpp"

namespace rowtune::emulator {

class Executor {
 public:
  /// Regions are what the kernel may touch, but for its workspace. `only`: blocks of the (single) launch to run.
  /// Throws Fault; std::logic_error when the kernel is not compiled in.
  void run(const Workload& workload, const Config& config, RowArgs args, const std::vector<Region>& regions,
           std::uint64_t order, const std::vector<std::int64_t>& only = {});
  Counters counters() const { return machine_.counters(); }

 private:
  void launch(const cuda::Plan& plan, const cuda::Launch& how, const std::string& config,
              const std::vector<std::int64_t>& only, const std::function<void()>& kernel);
  void* workspace_for(const cuda::Plan& plan);

  Machine machine_{1};
  std::vector<std::uint64_t> exchange_, parts_;
};

}  // namespace rowtune::emulator
