// Faults of every kind, planted into named configs of a real tune in a process of its own: each must be a row with the
// right kind, and every other config's result complete. On the cpu device the worker breaks; on a GPU the kernels do.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "db/database.hpp"
#include "kernels/device.hpp"
#include "kernels/space.hpp"

namespace rowtune {
namespace {

namespace fs = std::filesystem;

struct Planted {
  std::string fault;
  Outcome outcome;  ///< ok: it strikes once, and the second try is right
};

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    const char* other = std::getenv("ROWTUNE_PROGRAM");
    program_ = other ? other : ROWTUNE_PROGRAM;
    folder_ = fs::temp_directory_path() / fmt::format("rowtune-faults-{}", getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  int run(const std::string& device, const std::string& shape, const std::string& faults,
          const std::string& more = "") {
    const std::string command = fmt::format(
        "ROWTUNE_FAULTS='{}' OMP_WAIT_POLICY=passive '{}' tune --device {} --op softmax --dtype f32 --shapes "
        "{} --regime warm --timeout 8s --no-final --db '{}/t.db' {} >'{}/out' 2>'{}/err'",
        faults, program_, device, shape, folder_.string(), more, folder_.string(), folder_.string());
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string errors() const {
    std::ostringstream text;
    text << std::ifstream(folder_ / "err").rdbuf();
    return text.str();
  }
  std::map<std::string, db::BestRow> rows() const {
    std::map<std::string, db::BestRow> out;
    db::BestQuery query;
    query.op = Operation::softmax;
    for (db::BestRow& row :
         db::Database::open((folder_ / "t.db").string(), db::Database::Mode::read_only).leaderboard(query))
      out[row.config] = row;
    return out;
  }

  /// Plants each fault into another config and checks every row.
  void plant(const DeviceInfo& device, const std::string& shape, const std::vector<Planted>& planted) {
    const Space space =
        enumerate_space(Workload::of(Operation::softmax, Dtype::f32, parse_shape(shape), Regime::warm), device);
    ASSERT_GT(space.configs.size(), planted.size() + 1);
    std::map<std::string, Planted> by_config;
    std::string faults;
    for (const Config& config : space.configs) {
      if (by_config.size() == planted.size()) break;
      if (config == space.base) continue;
      // A fault is planted by the beginning of a name: no other config may begin alike.
      bool alone = true;
      for (const Config& other : space.configs)
        alone = alone && (other == config || !other.name().starts_with(config.name()));
      if (!alone || config.split_count() > 1) continue;
      const Planted& fault = planted[by_config.size()];
      faults += fmt::format("{}{}:{}", faults.empty() ? "" : ",", fault.fault, config.name());
      by_config[config.name()] = fault;
    }
    ASSERT_EQ(by_config.size(), planted.size());
    ASSERT_EQ(run(device.id, shape, faults), 0) << errors();
    const auto found = rows();
    EXPECT_EQ(found.size(), space.configs.size()) << "every config has a row";
    for (const Config& config : space.configs) {
      const auto row = found.find(config.name());
      ASSERT_NE(row, found.end()) << config.name();
      const auto fault = by_config.find(config.name());
      const Outcome expected = fault == by_config.end() ? Outcome::ok : fault->second.outcome;
      const std::string what = fault == by_config.end() ? "no fault" : fault->second.fault;
      EXPECT_EQ(row->second.status, to_string(expected))
          << what << " in " << config.name() << ": " << row->second.message;
      EXPECT_EQ(row->second.time_us.has_value(), expected == Outcome::ok) << what;
      EXPECT_EQ(row->second.message.empty(), expected == Outcome::ok) << what << ": " << row->second.message;
      if (expected != Outcome::ok)
        std::printf("%-14s %-14s %s\n", what.c_str(), row->second.status.c_str(), row->second.message.c_str());
    }
    const std::string said = errors();
    for (const auto& [config, fault] : by_config)
      if (fault.outcome != Outcome::ok) {
        EXPECT_NE(said.find(to_string(fault.outcome)), std::string::npos) << "grouped by reason at the end";
      }
  }

  std::string program_;
  fs::path folder_;
};

DeviceInfo device_named(const std::string& id) {
  for (const DeviceInfo& device : list_devices())
    if (device.id == id) return device;
  return {};
}

TEST_F(Faults, OnTheCpuEachIsARowWithItsKindAndTheRestIsComplete) {
  plant(device_named("cpu"), "4x64",
        {{"crash", Outcome::crash},
         {"kill", Outcome::crash},
         {"leave", Outcome::crash},
         {"garbage", Outcome::crash},
         {"wrong_result", Outcome::wrong_result},
         {"compile_error", Outcome::compile_error},
         {"crash!", Outcome::ok},
         {"garbage!", Outcome::ok}});
}

TEST_F(Faults, LongOnTheCpuAHangIsATimeout) {
  plant(device_named("cpu"), "4x64", {{"stall", Outcome::timeout}, {"stall!", Outcome::ok}});
}

TEST_F(Faults, OnAGpuTheKernelsThemselvesAreFaulty) {
  const DeviceInfo gpu = device_named("cuda:0");
  if (!gpu.usable) GTEST_SKIP() << "no working GPU: " << gpu.why_unusable;
  plant(gpu, "64x1000",
        {{"illegal_write", Outcome::crash},
         {"endless", Outcome::timeout},
         {"compile_error", Outcome::compile_error},
         {"wrong_result", Outcome::wrong_result},
         {"shared_memory", Outcome::launch_error},
         {"kill", Outcome::crash},
         {"crash", Outcome::crash},
         {"garbage", Outcome::crash}});
}

TEST_F(Faults, AWorkerThatNeverBeginsIsSaidSo) {
  EXPECT_EQ(run("cpu", "4x64", "", "--launcher false"), 3);
  EXPECT_NE(errors().find("exit code 1"), std::string::npos) << errors();
  EXPECT_EQ(run("cpu", "4x64", "", "--launcher no-such-program-here"), 3);
  EXPECT_NE(errors().find("no-such-program-here"), std::string::npos) << errors();
  EXPECT_EQ(run("cpu", "4x64", "", "--launcher 'echo hello'"), 3);
  EXPECT_NE(errors().find("hello"), std::string::npos) << errors();
}

TEST_F(Faults, ALauncherStartsWorkersThatShareTheWorkloads) {
  ASSERT_EQ(run("cpu", "4x64,8x64,4x128", "", "--launcher 'env nice' --workers 2 --budget 60s"), 0) << errors();
  const auto best = db::Database::open((folder_ / "t.db").string(), db::Database::Mode::read_only).best([] {
    db::BestQuery query;
    query.op = Operation::softmax;
    return query;
  }());
  EXPECT_EQ(best.size(), 3u);
  EXPECT_NE(errors().find("on 2 devices"), std::string::npos) << errors();
}

}  // namespace
}  // namespace rowtune
