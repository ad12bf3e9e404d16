// Compiles with NVRTC, without a GPU, what the spaces list: every config of shapes that together reach every algorithm
// and dtype, for four generations of GPU. A compile error fails; register spills of configs eligible as best are told.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "kernels/cuda/compiler.hpp"
#include "kernels/cuda/known_devices.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/slots.hpp"
#include "kernels/space.hpp"

namespace rowtune::cuda {
namespace {

/// One translation unit to compile and who asks for it.
struct Unit {
  std::string name;
  bool eligible = true;
};

/// Different configs and shapes often come to the same source: each is compiled once.
std::map<std::string, Unit> units_of(const std::vector<Operation>& ops, const std::vector<Dtype>& dtypes,
                                     const std::vector<const char*>& shapes, const DeviceInfo& device, bool one_each) {
  std::map<std::string, Unit> units;
  std::set<std::string> seen;
  for (const Operation op : ops)
    for (const Dtype dtype : dtypes)
      for (const char* shape : shapes) {
        const Workload w = Workload::of(op, dtype, parse_shape(shape));
        for (const Config& config : enumerate_space(w, device).configs) {
          if (one_each && !seen.insert(to_string(op) + to_string(dtype) + config.algorithm).second) continue;
          units.emplace(plan_kernel(w, config).source,
                        Unit{to_string(w) + " " + config.name(), is_eligible(device.kind, config)});
        }
      }
  return units;
}

/// Bytes of spill stores that ptxas told.
int spills_in(const std::string& log) {
  int worst = 0;
  for (std::size_t at = log.find(" bytes spill stores"); at != std::string::npos;
       at = log.find(" bytes spill stores", at + 1)) {
    const std::size_t begin = log.rfind(' ', at - 1) + 1;
    int bytes = 0;
    std::from_chars(log.data() + begin, log.data() + at, bytes);
    worst = std::max(worst, bytes);
  }
  return worst;
}

void compile_all(const std::map<std::string, Unit>& units, int architecture) {
  const Compiler compiler{std::filesystem::path()};  // no cache: this is about the compiler
  std::vector<std::pair<std::string, Unit>> list(units.begin(), units.end());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::vector<std::string> errors;
  std::vector<std::pair<int, std::string>> spills;
  {
    std::vector<std::jthread> pool;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
      pool.emplace_back([&] {
        for (std::size_t at = next++; at < list.size(); at = next++) {
          const auto& [source, unit] = list[at];
          try {
            const Binary binary = compiler.compile(source, architecture, true);
            const int spill = spills_in(binary.log);
            const std::lock_guard lock(mutex);
            if (spill > 0 && unit.eligible) spills.emplace_back(spill, unit.name);
          } catch (const ConfigFailure& e) {
            const std::lock_guard lock(mutex);
            errors.push_back(unit.name + ": " + e.what());
          }
        }
      });
  }
  std::sort(spills.rbegin(), spills.rend());
  fmt::print("sm_{}: {} translation units compiled, {} with an error, {} eligible ones spill registers\n", architecture,
             list.size(), errors.size(), spills.size());
  for (std::size_t i = 0; i < spills.size() && i < 10; ++i)
    fmt::print("  {} bytes spilled by {}\n", spills[i].first, spills[i].second);
  EXPECT_FALSE(list.empty());
  for (const auto& error : errors) ADD_FAILURE() << error;
}

const std::vector<const char*> reaching_shapes{"4097x1023", "1048576x16", "512x8192",
                                               "64x50000",  "512x131072", "1x1048576"};

class Architectures : public testing::TestWithParam<int> {};

void compile_one_of_each(int architecture) {
  const DeviceInfo device = known_device(architecture);
  compile_all(units_of(all_operations(), {Dtype::bf16}, reaching_shapes, device, true), architecture);
}

TEST(Hopper, CompilesOneConfigOfEveryAlgorithmAndOperation) { compile_one_of_each(90); }

TEST(Hopper, CompilesTheOracleOfEveryOperationAndDtype) {
  std::map<std::string, Unit> units;
  for (const Operation op : all_operations())
    for (const Dtype dtype : tensor_dtypes())
      units.emplace(oracle_source(Workload::of(op, dtype, Shape::of(2, 64))),
                    Unit{"the oracle of " + to_string(op) + " " + to_string(dtype)});
  compile_all(units, 90);
}

TEST_P(Architectures, LongCompilesOneConfigOfEveryAlgorithmAndOperation) { compile_one_of_each(GetParam()); }

/// All of them for Hopper: four minutes of processor time. An eighth of them, another one each, for the others.
TEST_P(Architectures, LongCompilesSoftmaxAndCopyConfigs) {
  const int architecture = GetParam();
  auto units = units_of({Operation::copy, Operation::softmax}, tensor_dtypes(), reaching_shapes,
                        known_device(architecture), false);
  if (architecture != 90) std::erase_if(units, [n = architecture](const auto&) mutable { return n++ % 8 != 0; });
  compile_all(units, architecture);
}

INSTANTIATE_TEST_SUITE_P(Sm, Architectures, testing::Values(75, 80, 90, 100),
                         [](const auto& sm) { return fmt::format("{}", sm.param); });

TEST(Spaces, ReachEveryAlgorithmInTheShapesCompiledHere) {
  const DeviceInfo device = known_device(90);
  std::set<std::string> reached, declared;
  for (const auto& algorithm : algorithms_of(DeviceKind::cuda)) declared.insert(algorithm.name);
  for (const Operation op : all_operations())
    for (const char* shape : reaching_shapes)
      for (const Config& config : enumerate_space(Workload::of(op, Dtype::bf16, parse_shape(shape)), device).configs)
        reached.insert(config.algorithm);
  EXPECT_EQ(reached, declared);
}

TEST(Compiler, TellsTheFirstErrorOfABadSource) {
  const Compiler compiler{std::filesystem::path()};
  try {
    compiler.compile("extern \"C\" __global__ void k() { int x = nonsense; }", 90);
    FAIL() << "compiled";
  } catch (const ConfigFailure& e) {
    EXPECT_EQ(e.outcome, Outcome::compile_error);
    EXPECT_NE(std::string(e.what()).find("nonsense"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace rowtune::cuda
