// The processes that compile, with the built program, real sources and programs that do not do what they should.

#include "tuner/compile_processes.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "kernels/cuda/cuda_device.hpp"

namespace rowtune {
namespace {

namespace fs = std::filesystem;

class CompileProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);  // as the program does
    cache_ = fs::path(testing::TempDir()) / ("compile_processes." + std::to_string(getpid()));
    fs::remove_all(cache_);
    setenv("ROWTUNE_CACHE", cache_.c_str(), 1);
    if (!cuda::has_compile_cache()) GTEST_SKIP() << "built without a CUDA Toolkit";
  }
  void TearDown() override { fs::remove_all(cache_); }
  std::size_t cached() const {
    if (!fs::exists(cache_)) return 0;
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(cache_), fs::directory_iterator()));
  }
  static std::string kernel(int number) {
    return "extern \"C\" __global__ void k(int* p) { *p = " + std::to_string(number) + "; }\n// \"quoted\"\n";
  }
  CompileProcesses processes_{{ROWTUNE_PROGRAM, "worker", "--compile", "90"}};
  fs::path cache_;
};

TEST_F(CompileProcessesTest, ManyCallersFillTheCache) {
  std::vector<std::jthread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([this, i] {
      EXPECT_TRUE(processes_.compile(kernel(2 * i)));
      EXPECT_TRUE(processes_.compile(kernel(2 * i + 1)));
    });
  callers.clear();
  EXPECT_EQ(cached(), 6u);
}

TEST_F(CompileProcessesTest, ABadSourceIsLeftForTheLoadingAndHoldsNothingUp) {
  EXPECT_TRUE(processes_.compile("nonsense"));
  EXPECT_EQ(cached(), 0u);
  EXPECT_TRUE(processes_.compile(kernel(1)));
  EXPECT_EQ(cached(), 1u);
}

TEST_F(CompileProcessesTest, WhoCannotHelpSaysSo) {
  EXPECT_FALSE(CompileProcesses({"/nowhere/rowtune", "worker"}).compile(kernel(1)));
  CompileProcesses leaves({"false"});  // without a word
  EXPECT_FALSE(leaves.compile(kernel(1)));
  EXPECT_FALSE(leaves.compile(kernel(2)));
}

/// The first process answers once and ends; what it was asked next is left, and another one goes on.
TEST_F(CompileProcessesTest, AProcessThatDiesCostsOneSource) {
  CompileProcesses dies({"sh", "-c", "echo ready && read line && echo done && read line"});
  EXPECT_TRUE(dies.compile(kernel(1)));
  EXPECT_TRUE(dies.compile(kernel(2)));
  EXPECT_TRUE(dies.compile(kernel(3)));
}

}  // namespace
}  // namespace rowtune
