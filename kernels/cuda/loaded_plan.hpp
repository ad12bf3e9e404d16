#pragma once
// A plan whose cubin is loaded on the current device, ready to launch on any pointers that suit the plan's workload.

#include <memory>
#include <vector>

#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/runtime.hpp"
#include "kernels/device.hpp"
#include "kernels/include/rowtune/launch_args.cuh"

namespace rowtune::cuda {

class LoadedPlan {
 public:
  /// Loads and resolves grids that depend on occupancy. Throws ConfigFailure(launch_error) when the device refuses it,
  /// or when blocks that wait for each other cannot be resident together.
  LoadedPlan(const Plan& plan, const std::string& cubin, const DeviceInfo& device);
  ~LoadedPlan();
  LoadedPlan(const LoadedPlan&) = delete;
  LoadedPlan& operator=(const LoadedPlan&) = delete;

  /// Enqueues all launches of the plan. `args.workspace` must hold plan.workspace_bytes that were zeroed once.
  void launch(const RowArgs& args, cudaStream_t stream) const { launch(args, plan_, stream); }
  /// The same for another number of rows: `plan` is of the same source.
  void launch(const RowArgs& args, const Plan& plan, cudaStream_t stream) const;
  KernelFacts facts() const { return facts_; }
  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
  KernelFacts facts_;
  cudaLibrary_t library_ = nullptr;
  std::vector<const void*> functions_;
  std::vector<std::int64_t> most_blocks_;  ///< of each launch whose blocks must be resident; 0 where there is no bound
};

/// A kernel of a cubin that takes plain arguments (fill and check).
class LoadedKernel {
 public:
  LoadedKernel(const std::string& cubin, const std::vector<std::string>& names);
  ~LoadedKernel();
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;
  void launch(std::size_t which, dim3 blocks, unsigned threads, void** args, cudaStream_t stream) const;

 private:
  cudaLibrary_t library_ = nullptr;
  std::vector<const void*> functions_;
};

}  // namespace rowtune::cuda
