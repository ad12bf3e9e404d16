// The specification on the emulator.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/emulator/executor.hpp"
#include "kernels/emulator/instantiations.hpp"
#include "kernels/tests/spec_runner.hpp"

namespace rowtune::spec {
namespace {

using emulator::Use;

class EmulatorRunner : public Runner {
 public:
  EmulatorRunner() {
    for (const auto& i : emulator::instantiations())
      if (i.sampled) cases_.push_back({i.workload, split_config_name(i.config)});
  }
  std::string name() const override { return "emulator"; }
  bool offers(const Workload& workload, const Config& config) const override {
    return emulator::instantiation_of(cuda::plan_kernel(workload, config)) != nullptr;
  }
  const std::vector<emulator::SampledCase>& cases() const override { return cases_; }

  void run(Call& call, std::uint64_t order) override {
    const RowArgs args = arguments_of(call, [&](int b) { return call.buffers[static_cast<std::size_t>(b)].data(); });
    ++runs_;
    executor_.run(call.workload, call.config, args, regions_of(call), order);
  }
  std::int64_t runs() const { return runs_; }
  emulator::Counters counters() const { return executor_.counters(); }

 private:
  static std::vector<emulator::Region> regions_of(const Call& call) {
    std::vector<emulator::Region> regions;
    const auto add = [&](const char* name, const Tensor& t, Use use) {
      if (!t.there()) return;
      regions.push_back({name, call.buffers[static_cast<std::size_t>(t.buffer)].data() + t.first, t.rows, t.cols,
                         t.stride, t.bytes, use});
    };
    const auto same = [](const Tensor& a, const Tensor& b) { return a.buffer == b.buffer && a.first == b.first; };
    const bool in_place = same(call.input, call.output);
    Tensor input = call.input, output = call.output;
    if (call.workload.op == Operation::copy && call.workload.shape.contiguous())
      for (Tensor* t : {&input, &output}) *t = {t->buffer, t->first, 1, t->rows * t->cols, t->rows * t->cols, t->bytes};
    add(in_place ? "input=output" : "input", input, in_place ? Use::input_output : Use::input);
    if (!in_place) add("output", output, Use::output);
    const bool updates = same(call.residual, call.residual_out);
    add("residual", call.residual, updates ? Use::input_output : Use::input);
    if (!updates) add("residual_out", call.residual_out, Use::output);
    add("weight", call.weight, Use::input);
    add("bias", call.bias, Use::input);
    return regions;
  }

  emulator::Executor executor_;
  std::vector<emulator::SampledCase> cases_;
  std::int64_t runs_ = 0;
};

EmulatorRunner& the_runner() {
  static EmulatorRunner it;
  return it;
}

/// Says at the end what was run; ROWTUNE_CASE_LOG names a file that gets the number of cases as a line, so that a run
/// of many test programs can be summed up.
class Summary : public testing::Environment {
 public:
  void TearDown() override {
    const auto c = the_runner().counters();
    fmt::print("emulator: {} cases on {} kernels, {} launches, {} blocks, {} thread steps\n", the_runner().runs(),
               the_runner().cases().size(), c.launches, c.blocks, c.steps);
    const char* log = std::getenv("ROWTUNE_CASE_LOG");
    if (!log) return;
    if (std::FILE* file = std::fopen(log, "a")) {
      fmt::print(file, "{}\n", the_runner().runs());
      std::fclose(file);
    }
  }
};
const testing::Environment* const summary = testing::AddGlobalTestEnvironment(new Summary);

}  // namespace

Runner& runner() { return the_runner(); }

}  // namespace rowtune::spec
