// Workers in processes of their own and the threads that schedule them: this program is its own worker, on a device
// without hardware.

#include "tuner/pool.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/errors.hpp"
#include "tuner/tests/fake_device.hpp"
#include "tuner/worker.hpp"

namespace rowtune {
namespace {

/// Its callers hold a lock: what it counts must come out right without one of its own.
class Counter : public TuneObserver {
 public:
  void measured(const TuneStatus&, const db::Measurement&) override {
    ++count;
    if (on_measured) on_measured();
  }
  std::size_t count = 0;
  std::function<void()> on_measured;
};

class Pool : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("rowtune-pool-test-" + std::to_string(getpid()) + "-" +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    for (int cols = 100; cols < 106; ++cols)
      workloads_.push_back(Workload::of(Operation::softmax, Dtype::bf16, Shape::of(64, cols)));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<WorkerGroup> start(std::size_t workers) {
    WorkerSettings settings;
    settings.device = "fake";
    std::vector<WorkerGroup> groups = start_workers(std::vector<WorkerSettings>(workers, settings));
    db::Database database = db::Database::open(path(), db::Database::Mode::read_write);
    for (WorkerGroup& group : groups)
      group.plan = make_plan(workloads_, *group.devices.front(), fake_spaces(), database);
    return groups;
  }
  std::string path() const { return (folder_ / "t.db").string(); }
  std::int64_t recorded() const {
    return db::Database::open(path(), db::Database::Mode::read_only).measurement_count();
  }

  std::filesystem::path folder_;
  std::vector<Workload> workloads_;
  Counter observer_;
  const std::atomic<bool> never_{false};
};

TEST_F(Pool, WorkersOfOneModelShareTheWorkloadsAndMeasureEachConfigOnce) {
  std::vector<WorkerGroup> groups = start(3);
  ASSERT_EQ(groups.size(), 1u);
  ASSERT_EQ(groups.front().workers.size(), 3u);
  const std::size_t configs = groups.front().plan.configs();
  ASSERT_EQ(configs, 2 * workloads_.size() * 13);  // and the ceilings
  const TuneReport report = tune_with(groups, path(), {}, observer_, never_);
  EXPECT_EQ(report.measured, configs);
  EXPECT_EQ(report.workers, 3);
  EXPECT_EQ(report.left, 0u);
  EXPECT_EQ(observer_.count, configs);
  EXPECT_EQ(recorded(), static_cast<std::int64_t>(configs));
}

TEST_F(Pool, AnInterruptEndsEveryWorkerAndKeepsWhatWasMeasured) {
  std::vector<WorkerGroup> groups = start(3);
  std::atomic<bool> interrupted{false};
  observer_.on_measured = [&] { interrupted = observer_.count >= 10; };
  const TuneReport report = tune_with(groups, path(), {}, observer_, interrupted);
  EXPECT_TRUE(report.interrupted);
  EXPECT_GE(report.measured, 10u);
  EXPECT_EQ(report.measured + report.left, groups.front().plan.configs());
  EXPECT_EQ(recorded(), static_cast<std::int64_t>(report.measured));
}

TEST_F(Pool, AnErrorOfAWorkerIsThrownWhenAllHaveEnded) {
  std::vector<WorkerGroup> groups = start(2);
  EXPECT_THROW(tune_with(groups, folder_ / "no" / "folder.db", {}, observer_, never_), EnvironmentError);
}

}  // namespace
}  // namespace rowtune

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker")
    return rowtune::serve_as_worker([] { return std::make_unique<rowtune::FakeDevice>(); });
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
