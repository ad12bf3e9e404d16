// Killed without warning in mid-tune, again and again: the database must hold everything but the config in flight, and
// the next run must do only the rest.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>

#include "tuner/identity.hpp"
#include "tuner/tests/fake_device.hpp"
#include "tuner/tune.hpp"

namespace rowtune {
namespace {

std::vector<Workload> workloads() {
  std::vector<Workload> list;
  for (int cols = 100; cols < 110; ++cols)
    list.push_back(Workload::of(Operation::softmax, Dtype::f32, Shape::of(64, cols)));
  return list;
}

/// The child: tunes in real time, and writes to the pipe what it is about to measure.
[[noreturn]] void tune_and_tell(const std::string& path, int pipe) {
  FakeDevice device;
  device.on_load = [pipe](const std::string& name) {
    const std::string line = name + "\n";
    if (write(pipe, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(9);
  };
  device.on_sample = [] { usleep(100); };
  std::atomic<bool> stop{false};
  TuneObserver silent;
  TuneSettings settings;
  settings.finals = false;  // a final loads kernels that were measured before
  try {
    db::Database database = db::Database::open(path, db::Database::Mode::read_write);
    DeviceMeasurer measurer(device);
    Tuner tuner(device, measurer, database, settings, silent, stop);
    const Plan plan = make_plan(workloads(), device, fake_spaces(), database);
    tuner.run(plan);
  } catch (...) {
    _exit(8);
  }
  _exit(0);
}

std::set<std::string> recorded(const std::string& path) {
  std::set<std::string> names;
  const db::Database database = db::Database::open(path, db::Database::Mode::read_write);
  const FakeDevice device;
  for (const Workload& w : workloads())
    for (const Workload& each : {w, ceiling_of(w)})
      for (const std::string& config : database.recorded_configs(key_of(device, each)))
        names.insert(to_string(each) + " " + config);
  return names;
}

TEST(Kill, LosesAtMostWhatIsInFlightAndRepeatsNothing) {
  const auto folder = std::filesystem::temp_directory_path() / ("rowtune-kill-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "t.db").string();
  std::mt19937 random(5);
  std::set<std::string> before;
  bool complete = false;
  int kills = 0;
  for (int round = 0; round < 200 && !complete; ++round) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      close(ends[0]);
      tune_and_tell(path, ends[1]);
    }
    close(ends[1]);
    // Longer as rounds go by: a busy machine, or an instrumented program, gets somewhere too.
    usleep(std::uniform_int_distribution<useconds_t>(1000, 120000)(random) * static_cast<useconds_t>(1 + round / 40));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    complete = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
    } else {
      ++kills;
    }

    std::string told;
    char buffer[4096];
    for (ssize_t n = read(ends[0], buffer, sizeof buffer); n > 0; n = read(ends[0], buffer, sizeof buffer))
      told.append(buffer, static_cast<std::size_t>(n));
    close(ends[0]);
    std::vector<std::string> begun;
    std::istringstream lines(told);
    for (std::string line; std::getline(lines, line);) begun.push_back(line);

    if (!std::filesystem::exists(path)) continue;
    const std::set<std::string> now = recorded(path);  // opening checks and recovers the file
    EXPECT_TRUE(std::includes(now.begin(), now.end(), before.begin(), before.end())) << "something committed is gone";
    for (std::size_t i = 0; i < begun.size(); ++i) {
      EXPECT_FALSE(before.contains(begun[i])) << begun[i] << " was measured twice";
      const bool in_flight = i + 1 == begun.size();
      EXPECT_TRUE(in_flight || now.contains(begun[i])) << begun[i] << " was lost";
    }
    before = now;
  }
  EXPECT_TRUE(complete);
  EXPECT_GE(kills, 3);
  EXPECT_EQ(before.size(), 2 * 10 * 13u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace rowtune
