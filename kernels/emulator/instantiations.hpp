#pragma once
// The kernels that were compiled for the emulator: the very text that NVRTC compiles, found by that text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/plan.hpp"
#include "kernels/include/rowtune/launch_args.cuh"
#include "kernels/words.hpp"

namespace rowtune::emulator {

using KernelFunction = void (*)(RowArgs);

struct Instantiation {
  std::uint64_t source;  ///< source_key of the plan
  const char* config;
  Workload workload;  ///< that it was planned for
  bool sampled;       ///< of the covering sample; otherwise a case of the ledger
  KernelFunction first;
  KernelFunction second;  ///< of plans with two launches
};

/// All that are linked in.
const std::vector<Instantiation>& instantiations();
/// Of this plan's source, or null.
const Instantiation* instantiation_of(const cuda::Plan& plan);

/// What decides the code on a host: the source without includes and launch bounds.
std::string host_source(const cuda::Plan& plan);
std::uint64_t source_key(const cuda::Plan& plan);

}  // namespace rowtune::emulator
