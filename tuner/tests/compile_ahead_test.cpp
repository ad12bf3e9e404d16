// Compiling on a thread of its own, beside a pool, as devices do it. Made for ThreadSanitizer (`./dev tsan`).

#include "tuner/compile_ahead.hpp"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>

namespace rowtune {
namespace {

/// Compiles nothing, on several threads; remembers what it was asked for.
class PoolDevice : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  void compile_ahead(const std::vector<Job>& jobs, const std::atomic<bool>& stop,
                     const std::function<void(std::size_t, std::size_t)>& progress) override {
    std::atomic<std::size_t> next{0};
    std::size_t done = 0;
    const auto work = [&] {
      for (std::size_t i = next++; i < jobs.size() && !stop; i = next++) {
        const std::lock_guard lock(mutex_);
        ++compiled_[jobs[i].config.name()];
        progress(++done, jobs.size());
      }
    };
    {
      std::vector<std::jthread> pool;
      for (int i = 0; i < 3; ++i) pool.emplace_back(work);
    }
    const std::lock_guard lock(mutex_);
    for (const Job& job : jobs)
      if (job.config.algorithm == "broken") throw std::runtime_error("the compiler is gone");
  }
  std::unique_ptr<Bench> open(const Workload&) override { return nullptr; }
  void compute(const Workload&, const Config&, const HostTensors&) override {}
  std::string source_fingerprint(Operation) const override { return "none"; }

  int times(const std::string& config) {
    const std::lock_guard lock(mutex_);
    return compiled_[config];
  }

 private:
  DeviceInfo info_;
  std::mutex mutex_;
  std::map<std::string, int> compiled_;
};

std::vector<Job> jobs(int first, int count) {
  std::vector<Job> list;
  for (int i = first; i < first + count; ++i)
    list.push_back({Workload::of(Operation::softmax, Dtype::f32, Shape::of(4, 64)), Config{"block", {{'b', i}}}});
  return list;
}

TEST(CompileAhead, EveryTicketIsWaitedForWhileOthersAreQueued) {
  PoolDevice device;
  CompileAhead ahead(device);
  const std::atomic<bool> stop{false};
  std::vector<CompileAhead::Ticket> tickets;
  for (int i = 0; i < 50; ++i) tickets.push_back(ahead.add(jobs(1000 * i, 20)));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(ahead.wait(tickets[static_cast<std::size_t>(i)], stop));
    for (int j = 0; j < 20; ++j) EXPECT_EQ(device.times("block.b" + std::to_string(1000 * i + j)), 1);
    if (i % 10 == 0) ahead.wait(ahead.add(jobs(100'000 + i, 1)), stop);
  }
}

TEST(CompileAhead, EndsWithWorkInFlight) {
  PoolDevice device;
  for (int i = 0; i < 20; ++i) {
    CompileAhead ahead(device);
    for (int j = 0; j < 5; ++j) ahead.add(jobs(10 * j, 10));
  }
}

TEST(CompileAhead, AStopEndsTheWait) {
  PoolDevice device;
  CompileAhead ahead(device);
  std::atomic<bool> stop{false};
  std::jthread later([&] { stop = true; });
  for (int i = 0; i < 100; ++i)
    if (!ahead.wait(ahead.add(jobs(10 * i, 10)), stop)) break;
}

TEST(CompileAhead, WhatTheDeviceThrowsArrivesAtTheWaiter) {
  PoolDevice device;
  CompileAhead ahead(device);
  const std::atomic<bool> stop{false};
  std::vector<Job> broken = jobs(0, 3);
  broken[1].config.algorithm = "broken";
  const auto ticket = ahead.add(broken);
  EXPECT_THROW(ahead.wait(ticket, stop), std::runtime_error);
}

}  // namespace
}  // namespace rowtune
