// The specification on the emulator.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "kernels/emulator/instantiations.hpp"
#include "kernels/emulator/machine.hpp"
#include "kernels/tests/spec_runner.hpp"

namespace rowtune::spec {
namespace {

using emulator::Use;

/// Few multiprocessors, so that persistent blocks have several rows each.
constexpr int units = 3;
constexpr int blocks_that_fit = 2;

class EmulatorRunner : public Runner {
 public:
  EmulatorRunner() {
    for (const auto& i : emulator::instantiations()) cases_.push_back({i.workload, split_config_name(i.config)});
  }
  std::string name() const override { return "emulator"; }
  bool offers(const Workload& workload, const Config& config) const override {
    return emulator::instantiation_of(cuda::plan_kernel(workload, config)) != nullptr;
  }
  const std::vector<emulator::SampledCase>& cases() const override { return cases_; }

  void run(Call& call, std::uint64_t order) override {
    const cuda::Plan plan = cuda::plan_kernel(call.workload, call.config);
    const auto* kernel = emulator::instantiation_of(plan);
    if (!kernel) throw std::logic_error("this kernel is not compiled into the test: " + plan.source);
    RowArgs args = arguments_of(call, [&](int b) { return call.buffers[static_cast<std::size_t>(b)].data(); });
    machine_.reseed(order);
    machine_.memory().clear();
    register_tensors(call);
    if (plan.workspace_bytes > 0) args.workspace = workspace_for(plan);
    ++runs_;
    try {
      for (std::size_t i = 0; i < plan.launches.size(); ++i)
        launch(plan, plan.launches[i], call.config.name(), [&] { (i == 0 ? kernel->first : kernel->second)(args); });
    } catch (...) {
      exchange_ = {};  // a launch that broke off leaves its counters anyhow
      throw;
    }
  }
  std::int64_t runs() const { return runs_; }
  emulator::Counters counters() const { return machine_.counters(); }

 private:
  void launch(const cuda::Plan& plan, const cuda::Launch& how, const std::string& config,
              const std::function<void()>& kernel) {
    emulator::Grid grid;
    grid.kernel = config + " " + how.function;
    grid.blocks = how.blocks;
    if (how.resident) {
      const int each = how.blocks_per_unit > 0 ? how.blocks_per_unit : blocks_that_fit;
      grid.blocks = std::min<std::int64_t>(grid.blocks, std::max(plan.split, each * units / plan.split * plan.split));
    }
    grid.threads = plan.block;
    grid.cluster = how.cluster;
    grid.dynamic_shared = how.dynamic_shared;
    grid.resident = how.cooperative;
    machine_.run(grid, kernel);
  }
  void add(Call& call, const char* name, const Tensor& t, Use use) {
    if (!t.there()) return;
    machine_.memory().add({name, call.buffers[static_cast<std::size_t>(t.buffer)].data() + t.first, t.rows, t.cols,
                           t.stride, size_of(call.workload.dtype), use});
  }
  void register_tensors(Call& call) {
    const auto same = [](const Tensor& a, const Tensor& b) { return a.buffer == b.buffer && a.first == b.first; };
    const bool in_place = same(call.input, call.output);
    Tensor input = call.input, output = call.output;
    if (call.workload.op == Operation::copy && call.workload.shape.contiguous())
      for (Tensor* t : {&input, &output}) *t = {t->buffer, t->first, 1, t->rows * t->cols, t->rows * t->cols};
    add(call, in_place ? "input=output" : "input", input, in_place ? Use::input_output : Use::input);
    if (!in_place) add(call, "output", output, Use::output);
    if (call.residual.there()) {
      const bool updates = same(call.residual, call.residual_out);
      add(call, "residual", call.residual, updates ? Use::input_output : Use::input);
      if (!updates) add(call, "residual_out", call.residual_out, Use::output);
    }
    add(call, "weight", call.weight, Use::input);
    add(call, "bias", call.bias, Use::input);
  }
  /// Splits: one workspace for all configs and launches, zeroed once, as exchange.cuh promises. Two launches: what the
  /// first stored is all that the second may load.
  void* workspace_for(const cuda::Plan& plan) {
    const bool exchange = plan.launches.size() == 1;
    Buffer& buffer = exchange ? exchange_ : parts_;
    if (buffer.size() < static_cast<std::size_t>(plan.workspace_bytes)) {
      buffer = Buffer(static_cast<std::size_t>(plan.workspace_bytes) * 2);
      std::memset(buffer.data(), 0, buffer.size());
    }
    machine_.memory().add({"workspace", buffer.data(), 1, plan.workspace_bytes / 4, plan.workspace_bytes / 4, 4,
                           exchange ? Use::input_output : Use::output});
    return buffer.data();
  }

  emulator::Machine machine_{1};
  std::vector<emulator::SampledCase> cases_;
  Buffer exchange_, parts_;
  std::int64_t runs_ = 0;
};

EmulatorRunner& the_runner() {
  static EmulatorRunner it;
  return it;
}

/// Says at the end what was run.
class Summary : public testing::Environment {
 public:
  void TearDown() override {
    const auto c = the_runner().counters();
    fmt::print("emulator: {} cases on {} kernels, {} launches, {} blocks, {} thread steps\n", the_runner().runs(),
               the_runner().cases().size(), c.launches, c.blocks, c.steps);
  }
};
const testing::Environment* const summary = testing::AddGlobalTestEnvironment(new Summary);

}  // namespace

Runner& runner() { return the_runner(); }

}  // namespace rowtune::spec
