#pragma once
// A device without hardware: times are a function of the config, failures are injected by name, and its clock moves
// only when something is done on it. So a tuner's decisions can be tested for what they are.

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/errors.hpp"
#include "tuner/plan.hpp"

namespace rowtune {

class FakeDevice : public Device {
 public:
  FakeDevice() {
    info_.id = "fake";
    info_.model = "Fake 1";
    info_.limits = "units=1";
    info_.toolchain = "none";
  }

  const DeviceInfo& info() const override { return info_; }
  DeviceInfo& edit() { return info_; }
  std::string source_fingerprint(Operation op) const override { return fingerprint + to_string(op); }
  std::string source(const Workload& workload, const Config& config) const override {
    return to_string(workload) + " " + config.name();
  }
  void compile(const std::string& source) override {
    const std::lock_guard lock(mutex_);
    compiled.insert(source);
  }
  std::unique_ptr<Bench> open(const Workload& workload) override;
  void compute(const Workload&, const Config&, const HostTensors&) override {}

  /// us per launch of a config; `noise(n)` multiplies the n-th sample.
  std::map<std::string, double> times;
  double default_time = 10;
  std::function<double(const Workload&, const std::string&)> time_of;  ///< of a config, where the shape matters
  std::function<double(const std::string&, int)> noise;
  std::map<std::string, Outcome> failures;
  std::set<std::string> too_big;                    ///< workloads whose buffers do not fit
  std::function<void(const std::string&)> on_load;  ///< hears `workload config`
  std::function<void()> on_sample;                  ///< to interrupt in mid-sweep
  std::string fingerprint = "v1-";

  double seconds_per_sample = 0.01;
  double clock = 0;
  int opened = 0;
  std::vector<std::string> loaded;     ///< `workload config`, in the order loaded
  std::set<std::string> compiled;      ///< `workload config`; to be read when no tuner runs
  std::map<std::string, int> samples;  ///< taken, by config

 private:
  DeviceInfo info_;
  std::mutex mutex_;
};

class FakeKernel : public Kernel {
 public:
  FakeKernel(FakeDevice& device, const Workload& workload, std::string config)
      : device_(device), workload_(workload), config_(std::move(config)) {
    fail_with({Outcome::compile_error, Outcome::launch_error});
  }
  KernelFacts facts() const override {
    KernelFacts facts;
    facts.registers = 32;
    return facts;
  }
  Verification verify() override {
    fail_with({Outcome::crash, Outcome::timeout});
    const auto failure = device_.failures.find(config_);
    if (failure != device_.failures.end() && failure->second == Outcome::wrong_result)
      return {false, 1e6, "1 element of 64 is wrong"};
    return {true, 0.5, ""};
  }
  double sample() override {
    if (device_.on_sample) device_.on_sample();
    device_.clock += device_.seconds_per_sample;
    const int n = device_.samples[config_]++;
    const auto time = device_.times.find(config_);
    const double us = device_.time_of               ? device_.time_of(workload_, config_)
                      : time == device_.times.end() ? device_.default_time
                                                    : time->second;
    return us * (device_.noise ? device_.noise(config_, n) : 1);
  }
  void launch() override {}

 private:
  void fail_with(std::initializer_list<Outcome> kinds) {
    const auto failure = device_.failures.find(config_);
    if (failure == device_.failures.end()) return;
    for (Outcome kind : kinds)
      if (failure->second == kind) throw ConfigFailure(kind, fmt::format("injected into {}", config_));
  }
  FakeDevice& device_;
  Workload workload_;
  std::string config_;
};

class FakeBench : public Bench {
 public:
  FakeBench(FakeDevice& device, const Workload& workload) : device_(device), workload_(workload) {}
  std::unique_ptr<Kernel> load(const Config& config) override {
    device_.loaded.push_back(to_string(workload_) + " " + config.name());
    if (device_.on_load) device_.on_load(device_.loaded.back());
    return std::make_unique<FakeKernel>(device_, workload_, config.name());
  }
  std::int64_t launches_per_sample() const override { return 10; }
  std::int64_t bytes_in_rotation() const override { return 1 << 20; }

 private:
  FakeDevice& device_;
  Workload workload_;
};

inline std::unique_ptr<Bench> FakeDevice::open(const Workload& workload) {
  ++opened;
  if (too_big.contains(to_string(workload))) throw ConfigFailure(Outcome::out_of_memory, "3 TiB do not fit");
  return std::make_unique<FakeBench>(*this, workload);
}

/// Twelve configs of two algorithms and one unsafe; base is `slow.b32.v1`.
inline Spaces fake_spaces() {
  Spaces spaces;
  spaces.enumerate = [](const Workload&) {
    Space space;
    for (const char* algorithm : {"slow", "fast"})
      for (int b : {32, 64, 128})
        for (int v : {1, 2}) space.configs.push_back({algorithm, {{'b', b}, {'v', v}}});
    space.configs.push_back({"unsafe", {{'b', 32}, {'v', 1}}});
    space.base = space.configs.front();
    space.considered = 13;
    return space;
  };
  spaces.eligible = [](const Config& config) { return config.algorithm != "unsafe"; };
  return spaces;
}

}  // namespace rowtune
