#pragma once
// Which workloads and configs the kernels are tested on: a sample in which every pair of values that can occur together
// occurs together (operation, dtype, algorithm, every axis, vectors per thread, raggedness, weights), and every
// algorithm in every operation and dtype. Configs are legal ones: `must` constraints hold, `worth` ones may be broken,
// and axis values beyond the declared ones occur.

#include <cstdint>
#include <vector>

#include "kernels/config.hpp"
#include "kernels/device.hpp"
#include "kernels/words.hpp"

namespace rowtune::emulator {

struct SampledCase {
  Workload workload;
  Config config;
};

struct Sample {
  std::vector<SampledCase> cases;
  std::size_t pairs = 0;    ///< pairs of values that occur in the pool of random legal cases
  std::size_t covered = 0;  ///< of these, in `cases`
};

struct SampleLimits {
  std::uint64_t seed = 1;
  std::size_t pool = 30000;    ///< random legal cases to choose from
  std::size_t most = 1000;     ///< cases at most
  int times = 1;               ///< each pair is to occur in this many cases, as far as the pool has them
  int threads_at_once = 4096;  ///< of blocks that must be resident together
};

/// Greedy: each case is the one of the pool that adds most pairs. Deterministic for a seed.
Sample covering_sample(const DeviceInfo& device, const SampleLimits& limits);

/// A config legal for the workload: `must` constraints hold.
bool is_legal(const Workload& workload, const DeviceInfo& device, const Config& config);
/// `each` random legal configs of every algorithm that has any for the workload. Deterministic for a workload.
std::vector<SampledCase> legal_cases(const Workload& workload, const DeviceInfo& device, int each);

/// Row lengths at which kernels go wrong: around powers of two, vectors, warps and blocks.
const std::vector<std::int64_t>& hard_cols();

}  // namespace rowtune::emulator
