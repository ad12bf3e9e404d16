#include "tuner/measure.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tuner/tests/fake_device.hpp"

namespace rowtune {
namespace {

class Measure : public testing::Test {
 protected:
  db::Measurement measure(const std::string& config, std::optional<double> to_beat = std::nullopt) {
    MeasureRequest request;
    request.workload = workload_;
    request.config = config;
    request.time_to_beat_us = to_beat;
    return measurer_.measure(request);
  }

  FakeDevice device_;
  DeviceMeasurer measurer_{device_, [this] { return device_.clock; }};
  Workload workload_ = Workload::of(Operation::softmax, Dtype::bf16, Shape::of(64, 100));
};

TEST_F(Measure, RecordsTheEstimateAndWhatItIsOf) {
  device_.times["fast.b64.c4.v2"] = 7;
  const auto m = measure("fast.b64.c4.v2");
  EXPECT_EQ(m.outcome, Outcome::ok);
  EXPECT_EQ(m.time_us, 7);
  EXPECT_EQ(m.time_lo_us, 7);
  EXPECT_EQ(m.time_hi_us, 7);
  EXPECT_TRUE(m.settled);
  EXPECT_EQ(m.sample_count, SamplingLimits{}.min_samples);
  EXPECT_EQ(m.samples_us.size(), 7u);
  EXPECT_EQ(m.key.config, "fast.b64.c4.v2");
  EXPECT_EQ(m.key.device_model, "Fake 1");
  EXPECT_EQ(m.key.source_fingerprint, "v1-softmax");
  EXPECT_EQ(m.algorithm, "fast");
  EXPECT_EQ(m.block_size, 64);
  EXPECT_EQ(m.vector_width, 2);
  EXPECT_EQ(m.split_count, 0);
  EXPECT_EQ(m.extra_axes, R"({"c":4})");
  EXPECT_EQ(m.bytes, 64 * 100 * 2 * 2);
  EXPECT_EQ(m.launches_per_sample, 10);
  EXPECT_EQ(m.facts.registers, 32);
  EXPECT_EQ(m.max_error_ulp, 0.5);
}

TEST_F(Measure, WarmUpDoesNotCount) {
  device_.noise = [](const std::string&, int n) { return n < 3 ? 4.0 - n : 1.0; };  // 4, 3, 2, 1, 1...
  const auto m = measure("fast.b32");
  EXPECT_EQ(m.time_us, 10);
  EXPECT_EQ(m.time_hi_us, 10);
}

TEST_F(Measure, EveryFailureIsARecordWithItsKindAndText) {
  for (Outcome kind :
       {Outcome::compile_error, Outcome::launch_error, Outcome::wrong_result, Outcome::timeout, Outcome::crash}) {
    device_.failures = {{"bad.b32", kind}};
    const auto m = measure("bad.b32");
    EXPECT_EQ(m.outcome, kind) << to_string(kind);
    EXPECT_FALSE(m.message.empty());
    EXPECT_FALSE(m.time_us.has_value());
    EXPECT_FALSE(m.settled);
  }
  device_.failures.clear();
  EXPECT_EQ(measure("bad.b32").outcome, Outcome::ok);  // nothing of it sticks
}

TEST_F(Measure, WrongResultsAreNeverTimed) {
  device_.failures = {{"bad.b32", Outcome::wrong_result}};
  measure("bad.b32");
  EXPECT_EQ(device_.samples["bad.b32"], 0);
}

TEST_F(Measure, BuffersThatDoNotFitAreSaidSo) {
  device_.too_big = {to_string(workload_)};
  const auto m = measure("fast.b32");
  EXPECT_EQ(m.outcome, Outcome::out_of_memory);
  EXPECT_EQ(m.launches_per_sample, 0);
}

TEST_F(Measure, FasterThanTheMemoryIsImplausible) {
  device_.edit().peak_gbps = 100;
  const double bytes = static_cast<double>(bytes_moved(workload_));
  device_.default_time = bytes / 104e3;  // 104 GB/s
  const auto m = measure("fast.b32");
  EXPECT_EQ(m.outcome, Outcome::implausible);
  EXPECT_FALSE(m.time_us.has_value());
  EXPECT_NE(m.message.find("104 GB/s"), std::string::npos) << m.message;
  device_.default_time = bytes / 102e3;  // within 3 %
  EXPECT_EQ(measure("fast.b32").outcome, Outcome::ok);
  device_.default_time = bytes / 500e3;
  workload_.regime = Regime::warm;  // from a cache it may be
  EXPECT_EQ(measure("fast.b32").outcome, Outcome::ok);
}

TEST_F(Measure, ANonsenseTimeIsNoResult) {
  device_.noise = [](const std::string&, int) { return std::nan(""); };
  const auto m = measure("fast.b32");
  EXPECT_EQ(m.outcome, Outcome::implausible);
  EXPECT_FALSE(m.time_us.has_value());
}

TEST_F(Measure, ABeatenConfigIsSampledLess) {
  const auto m = measure("fast.b32", 5.0);
  EXPECT_EQ(m.outcome, Outcome::ok);
  EXPECT_EQ(m.sample_count, 3);
  EXPECT_FALSE(m.settled);
}

TEST_F(Measure, ConfigsOfAWorkloadShareBuffersUntilFreshOnesAreAskedFor) {
  measure("fast.b32");
  measure("fast.b64");
  EXPECT_EQ(device_.opened, 1);
  InterleaveRequest request;
  request.workload = workload_;
  request.configs = {"fast.b32", "fast.b64", "fast.b128"};
  request.rounds = 5;
  auto samples = measurer_.interleave(request);
  EXPECT_EQ(device_.opened, 1);
  request.fresh_buffers = true;
  samples = measurer_.interleave(request);
  EXPECT_EQ(device_.opened, 2);
  ASSERT_EQ(samples.size(), 3u);
  for (const auto& each : samples) EXPECT_EQ(each.size(), 5u);
  request.max_seconds = 0;
  EXPECT_EQ(measurer_.interleave(request)[0].size(), 1u);  // at least one round
}

}  // namespace
}  // namespace rowtune
