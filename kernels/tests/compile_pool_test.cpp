// The run-time compiler and its cache on disk, used by many threads and several compilers at once, as the pool that
// compiles ahead does. Made for ThreadSanitizer (`./dev tsan`), and true without it.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "kernels/cuda/compiler.hpp"

namespace rowtune::cuda {
namespace {

namespace fs = std::filesystem;

std::string kernel(int number) {
  return fmt::format("extern \"C\" __global__ void k(int* p) {{ *p = {}; }}\n", number);
}

class CompilePool : public testing::Test {
 protected:
  void SetUp() override { folder_ = fs::temp_directory_path() / fmt::format("rowtune-pool-{}", getpid()); }
  void TearDown() override { fs::remove_all(folder_); }

  /// Every thread compiles all of the kernels, each beginning with another one; the compilers share the cache.
  void compile_all(int threads, int kernels, std::vector<std::string>& hashes) {
    const Compiler compilers[2] = {Compiler(folder_), Compiler(folder_)};
    std::vector<std::vector<std::string>> seen(static_cast<std::size_t>(threads));
    {
      std::vector<std::jthread> pool;
      for (int t = 0; t < threads; ++t)
        pool.emplace_back([&, t] {
          auto& mine = seen[static_cast<std::size_t>(t)];
          mine.resize(static_cast<std::size_t>(kernels));
          for (int i = 0; i < kernels; ++i) {
            const int k = (i + t) % kernels;
            mine[static_cast<std::size_t>(k)] = compilers[t % 2].compile(kernel(k), 90).hash;
          }
        });
    }
    hashes = seen[0];
    for (const auto& other : seen) EXPECT_EQ(other, hashes);
  }
  fs::path folder_;
};

TEST_F(CompilePool, ThreadsAndCompilersShareACache) {
  std::vector<std::string> first, again;
  compile_all(4, 6, first);
  std::size_t entries = 0;
  for (const auto& entry : fs::directory_iterator(folder_)) entries += entry.path().extension() == ".cubin";
  EXPECT_EQ(entries, 6u) << "and no temporary file is left: " << std::distance(fs::directory_iterator(folder_), {});
  compile_all(4, 6, again);
  EXPECT_EQ(again, first);
}

TEST_F(CompilePool, DamagedEntriesAreCompiledAnewByWhoeverMeetsThem) {
  std::vector<std::string> first, again;
  compile_all(2, 4, first);
  for (const auto& entry : fs::directory_iterator(folder_)) fs::resize_file(entry.path(), 100);
  compile_all(4, 4, again);
  EXPECT_EQ(again, first);
}

TEST_F(CompilePool, AWrongKernelFailsInItsThreadOnly) {
  const Compiler compiler(folder_);
  std::atomic<int> refused{0}, compiled{0};
  {
    std::vector<std::jthread> pool;
    for (int t = 0; t < 4; ++t)
      pool.emplace_back([&, t] {
        try {
          compiler.compile(t % 2 ? kernel(t) : std::string("this is no kernel"), 90);
          ++compiled;
        } catch (const ConfigFailure&) {
          ++refused;
        }
      });
  }
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(compiled, 2);
}

}  // namespace
}  // namespace rowtune::cuda
