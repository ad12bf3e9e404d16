// Compiling on many threads beside the one that measures. Made for ThreadSanitizer (`./dev tsan`).

#include "tuner/compile_ahead.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace rowtune {
namespace {

/// Compiles nothing, remembers what it was asked for, and waits at a gate that a test may shut.
class PoolDevice : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  std::string source(const Workload&, const Config& config) const override {
    return config.algorithm == "nothing" ? "" : config.algorithm + std::to_string(config.get('b', 0));
  }
  void compile(const std::string& source) override {
    std::unique_lock lock(mutex_);
    order_.push_back(source);
    ++compiled_[source];
    changed_.wait(lock, [this] { return open_; });
    if (source.starts_with("broken")) throw std::runtime_error("it does not compile");
  }
  std::unique_ptr<Bench> open(const Workload&) override { return nullptr; }
  void compute(const Workload&, const Config&, const HostTensors&) override {}
  std::string source_fingerprint(Operation) const override { return "none"; }

  int times(const std::string& source) {
    const std::lock_guard lock(mutex_);
    return compiled_[source];
  }
  std::vector<std::string> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  void set_gate(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void wait_until_begun(std::size_t count) {
    while (order().size() < count) std::this_thread::yield();
  }

 private:
  DeviceInfo info_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  std::map<std::string, int> compiled_;
  std::vector<std::string> order_;
};

const Workload workload = Workload::of(Operation::softmax, Dtype::f32, Shape::of(4, 64));
Config config(int number, const std::string& algorithm = "block") { return {algorithm, {{'b', number}}}; }

TEST(CompileAhead, EveryTicketIsCompiledOnceAndWaitedForWhileOthersAreQueued) {
  PoolDevice device;
  CompileAhead ahead(device, 4);
  const std::atomic<bool> stop{false};
  std::vector<CompileAhead::Ticket> tickets;
  for (int i = 0; i < 1000; ++i) tickets.push_back(ahead.add(workload, config(i)));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(ahead.wait(tickets[static_cast<std::size_t>(i)], stop));
    EXPECT_EQ(device.times("block" + std::to_string(i)), 1);
    EXPECT_EQ(ahead.add(workload, config(i)), tickets[static_cast<std::size_t>(i)]) << "the same source";
  }
  EXPECT_EQ(device.order().size(), 1000u);
}

TEST(CompileAhead, WhatIsWaitedForGoesFirst) {
  PoolDevice device;
  device.set_gate(false);
  CompileAhead ahead(device, 1);
  const std::atomic<bool> stop{false};
  for (int i = 0; i < 10; ++i) ahead.add(workload, config(i));
  const auto last = ahead.add(workload, config(10));
  device.wait_until_begun(1);
  std::size_t done = 99, total = 0;
  EXPECT_TRUE(ahead.wait(last, stop, [&](std::size_t finished, std::size_t all) {
    done = finished;
    total = all;
    device.set_gate(true);
  }));
  EXPECT_EQ(device.order()[1], "block10");
  EXPECT_EQ(done, 0u);
  EXPECT_EQ(total, 11u);
}

TEST(CompileAhead, AllThreadsWork) {
  PoolDevice device;
  device.set_gate(false);
  CompileAhead ahead(device, 3);
  for (int i = 0; i < 5; ++i) ahead.add(workload, config(i));
  device.wait_until_begun(3);
  device.set_gate(true);
}

TEST(CompileAhead, NothingToCompileIsDoneAtOnce) {
  PoolDevice device;
  CompileAhead ahead(device, 2);
  const std::atomic<bool> stop{false};
  EXPECT_TRUE(ahead.wait(ahead.add(workload, config(1, "nothing")), stop));
  EXPECT_TRUE(device.order().empty());
}

TEST(CompileAhead, AFailureIsLeftForTheLoadingAndHoldsNothingUp) {
  PoolDevice device;
  CompileAhead ahead(device, 1);
  const std::atomic<bool> stop{false};
  const auto broken = ahead.add(workload, config(1, "broken")), whole = ahead.add(workload, config(2));
  EXPECT_TRUE(ahead.wait(broken, stop));
  EXPECT_TRUE(ahead.wait(whole, stop));
}

TEST(CompileAhead, EndsWithWorkInFlight) {
  PoolDevice device;
  for (int i = 0; i < 20; ++i) {
    CompileAhead ahead(device, 3);
    for (int j = 0; j < 50; ++j) ahead.add(workload, config(j));
  }
}

TEST(CompileAhead, AStopEndsTheWait) {
  PoolDevice device;
  device.set_gate(false);
  CompileAhead ahead(device, 2);
  std::atomic<bool> stop{false};
  std::jthread later([&] { stop = true; });
  EXPECT_FALSE(ahead.wait(ahead.add(workload, config(1)), stop));
  device.set_gate(true);
}

}  // namespace
}  // namespace rowtune
