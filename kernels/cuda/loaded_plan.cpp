#include "kernels/cuda/loaded_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace rowtune::cuda {
namespace {

const void* function_of(cudaLibrary_t library, const std::string& name) {
  cudaKernel_t kernel = nullptr;
  check(cudaLibraryGetKernel(&kernel, library, name.c_str()), fmt::format("finding kernel {}", name));
  return reinterpret_cast<const void*>(kernel);
}

cudaLibrary_t load(const std::string& cubin) {
  cudaLibrary_t library = nullptr;
  check(cudaLibraryLoadData(&library, cubin.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), "loading the cubin");
  return library;
}

}  // namespace

LoadedPlan::LoadedPlan(const Plan& plan, const std::string& cubin, const DeviceInfo& device)
    : plan_(plan), library_(load(cubin)) {
  try {
    for (const Launch& launch : plan_.launches) {
      const void* function = function_of(library_, launch.function);
      cudaFuncAttributes attributes{};
      check(cudaFuncGetAttributes(&attributes, function), "reading the kernel's attributes");
      if (dispatch::asks_for_shared(static_cast<std::int64_t>(attributes.sharedSizeBytes), launch.dynamic_shared))
        check(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, launch.dynamic_shared),
              fmt::format("asking for {} bytes of shared memory", launch.dynamic_shared));
      if (launch.cluster > 8)
        check(cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
              "asking for a cluster of 16");
      int resident = 0;
      check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, function, plan_.block,
                                                          static_cast<std::size_t>(launch.dynamic_shared)),
            "asking how many blocks fit a multiprocessor");
      if (resident == 0) throw ConfigFailure(Outcome::launch_error, "no block of this kernel fits a multiprocessor");

      std::int64_t most = 0;
      if (launch.resident) {
        most = dispatch::resident_blocks(plan_.split, launch.blocks_per_unit, resident, device.units);
        if (most < plan_.split)
          throw ConfigFailure(Outcome::launch_error,
                              fmt::format("{} blocks must be resident together, and {} fit the device", plan_.split,
                                          resident * device.units));
      }
      functions_.push_back(function);
      most_blocks_.push_back(most);
      // Of several launches the hungriest is told.
      facts_.registers = std::max(facts_.registers, attributes.numRegs);
      facts_.spill_bytes = std::max(facts_.spill_bytes, static_cast<int>(attributes.localSizeBytes));
      facts_.shared_bytes =
          std::max(facts_.shared_bytes, static_cast<int>(attributes.sharedSizeBytes) + launch.dynamic_shared);
      facts_.blocks_per_unit = facts_.blocks_per_unit == 0 ? resident : std::min(facts_.blocks_per_unit, resident);
    }
  } catch (...) {
    cudaLibraryUnload(library_);
    throw;
  }
}

LoadedPlan::~LoadedPlan() { cudaLibraryUnload(library_); }

void LoadedPlan::launch(const RowArgs& args, const Plan& plan, cudaStream_t stream) const {
  RowArgs copy = args;
  void* parameters[] = {&copy};
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const std::int64_t blocks = most_blocks_[i] > 0 ? std::min(launch.blocks, most_blocks_[i]) : launch.blocks;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(blocks), 1, 1);
    config.blockDim = dim3(static_cast<unsigned>(plan.block), 1, 1);
    config.dynamicSmemBytes = static_cast<std::size_t>(launch.dynamic_shared);
    config.stream = stream;
    std::array<cudaLaunchAttribute, 1> attributes{};
    unsigned count = 0;
    if (launch.cluster > 1) {
      attributes[count].id = cudaLaunchAttributeClusterDimension;
      attributes[count].val.clusterDim.x = static_cast<unsigned>(launch.cluster);
      attributes[count].val.clusterDim.y = attributes[count].val.clusterDim.z = 1;
      ++count;
    }
    config.attrs = attributes.data();
    config.numAttrs = count;
    check(cudaLaunchKernelExC(&config, functions_[i], parameters), fmt::format("launching {}", launch.function));
  }
}

LoadedKernel::LoadedKernel(const std::string& cubin, const std::vector<std::string>& names) : library_(load(cubin)) {
  for (const auto& name : names) functions_.push_back(function_of(library_, name));
}
LoadedKernel::~LoadedKernel() { cudaLibraryUnload(library_); }

void LoadedKernel::launch(std::size_t which, dim3 blocks, unsigned threads, void** args, cudaStream_t stream) const {
  check(cudaLaunchKernel(functions_.at(which), blocks, dim3(threads), args, 0, stream), "launching a helper kernel");
}

}  // namespace rowtune::cuda
