// The specification on a GPU: the same tests, the kernels compiled by NVRTC and launched on exact allocations, so that
// compute-sanitizer sees the first byte too far. Skips where there is no GPU.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <thread>

#include "kernels/cuda/compiler.hpp"
#include "kernels/cuda/cuda_device.hpp"
#include "kernels/cuda/loaded_plan.hpp"
#include "kernels/tests/spec_runner.hpp"

namespace rowtune::spec {
namespace {

/// Number of kernels of the sample: ROWTUNE_SPEC_KERNELS, else 1000.
std::size_t sample_size() {
  const char* text = std::getenv("ROWTUNE_SPEC_KERNELS");
  return text ? static_cast<std::size_t>(std::strtoul(text, nullptr, 10)) : 1000;
}

class GpuRunner : public Runner {
 public:
  explicit GpuRunner(DeviceInfo device) : device_(std::move(device)) {
    emulator::SampleLimits limits;
    limits.most = sample_size();
    cases_ = emulator::covering_sample(device_, limits).cases;
    compile_ahead();
  }
  std::string name() const override { return device_.model; }
  bool offers(const Workload&, const Config&) const override { return true; }
  const std::vector<emulator::SampledCase>& cases() const override { return cases_; }

  void run(Call& call, std::uint64_t) override {
    const cuda::LoadedPlan& loaded = load(cuda::plan_kernel(call.workload, call.config));
    const cuda::Plan plan = cuda::plan_kernel(call.workload, call.config);
    std::vector<cuda::DeviceBuffer> buffers;
    for (const Buffer& b : call.buffers) {
      buffers.emplace_back(static_cast<std::int64_t>(b.size()));
      if (b.size() > 0)
        cuda::check(cudaMemcpy(buffers.back().data(), b.data(), b.size(), cudaMemcpyHostToDevice),
                    "uploading a tensor");
    }
    cuda::DeviceBuffer workspace(plan.workspace_bytes);
    if (workspace.data())
      cuda::check(cudaMemset(workspace.data(), 0, static_cast<std::size_t>(plan.workspace_bytes)),
                  "clearing the workspace");
    cudaDeviceSynchronize();
    RowArgs args =
        arguments_of(call, [&](int b) { return static_cast<std::byte*>(buffers[static_cast<std::size_t>(b)].data()); });
    args.workspace = workspace.data();
    if (args.rows > 0 && args.cols > 0) loaded.launch(args, plan, stream_);
    stream_.wait(call.config.name());
    for (std::size_t b = 0; b < buffers.size(); ++b)
      if (buffers[b].bytes() > 0)
        cuda::check(
            cudaMemcpy(call.buffers[b].data(), buffers[b].data(), call.buffers[b].size(), cudaMemcpyDeviceToHost),
            "downloading a tensor");
    ++runs_;
  }
  std::int64_t runs() const { return runs_; }
  std::size_t kernels() const { return loaded_.size(); }

 private:
  void compile_ahead() {
    std::atomic<std::size_t> next{0};
    std::vector<std::jthread> pool;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      pool.emplace_back([&] {
        for (std::size_t at = next++; at < cases_.size(); at = next++) {
          try {
            compiler_.compile(cuda::plan_kernel(cases_[at].workload, cases_[at].config).source, device_.architecture);
          } catch (const std::exception&) {
            // told when it is loaded
          }
        }
      });
  }
  /// One kernel for each source: the rows may differ, and with them the grid, which `launch` is given anew.
  const cuda::LoadedPlan& load(const cuda::Plan& plan) {
    auto& slot = loaded_[plan.source + std::to_string(plan.launches.front().dynamic_shared)];
    if (!slot)
      slot =
          std::make_unique<cuda::LoadedPlan>(plan, compiler_.compile(plan.source, device_.architecture).cubin, device_);
    return *slot;
  }

  DeviceInfo device_;
  cuda::Compiler compiler_;
  std::vector<emulator::SampledCase> cases_;
  std::map<std::string, std::unique_ptr<cuda::LoadedPlan>> loaded_;
  cuda::Stream stream_;
  std::int64_t runs_ = 0;
};

std::unique_ptr<GpuRunner>& the_runner() {
  static std::unique_ptr<GpuRunner> it;
  return it;
}

}  // namespace

Runner& runner() { return *the_runner(); }

}  // namespace rowtune::spec

int main(int argc, char** argv) {
  using namespace rowtune;
  const DeviceInfo device = cuda::list_cuda_devices().front();
  if (!device.usable) {
    fmt::print("skipped: no GPU to run the specification on: {}\n", device.why_unusable);
    return 0;
  }
  spec::the_runner() = std::make_unique<spec::GpuRunner>(device);
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  fmt::print("{}: {} cases on {} kernels\n", device.model, spec::the_runner()->runs(), spec::the_runner()->kernels());
  return failed;
}
