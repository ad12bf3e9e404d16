#include "tuner/protocol.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/worker_process.hpp"

namespace rowtune {
namespace {

nlohmann::json through_a_line(const nlohmann::json& message) {
  const std::string line = line_of(message);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  return nlohmann::json::parse(line);
}

TEST(Protocol, AMeasurementArrivesAsItWas) {
  db::Measurement m;
  m.key.device_model = "GPU", m.key.device_limits = "sm=90", m.key.toolchain = "NVRTC 13.0";
  m.key.source_fingerprint = "abc", m.key.config = "warp.b128.r2.v8.s1";
  m.key.workload =
      Workload::of(Operation::layernorm, Dtype::bf16, parse_shape("4097x1023:ld=1024:off=3"), Regime::warm);
  m.provenance = {"cuda:0", "GPU-1", "CUDA 13.0", "host", "0.1.0", "2026-01-01T00:00:00Z"};
  m.outcome = Outcome::wrong_result;
  m.message = "two lines\nand a byte \xff that is not UTF-8";
  m.eligible = false, m.is_base = true;
  m.block_size = 128, m.rows_per_warp = 2, m.vector_width = 8, m.split_count = 1;
  m.algorithm = "warp", m.extra_axes = R"({"x":1})";
  m.time_us = 0.1 + 0.2, m.time_hi_us = 1e-300;
  m.sample_count = 3, m.settled = true, m.samples_us = {0.1, 1.0 / 3, 2e9};
  m.bytes = std::int64_t{1} << 40, m.launches_per_sample = 7, m.bytes_in_rotation = 9;
  m.max_error_ulp = std::nan("");
  m.facts = {40, 4, 1024, 2, "hash"};
  m.clocks = R"({"sm_mhz":1980})", m.measured_at = "now";
  const db::Measurement back = measurement_from(through_a_line(to_json(m)));
  EXPECT_EQ(back.key.workload, m.key.workload);
  EXPECT_EQ(back.key.config, m.key.config);
  EXPECT_EQ(back.key.source_fingerprint, "abc");
  EXPECT_EQ(back.provenance.uuid, "GPU-1");
  EXPECT_EQ(back.outcome, m.outcome);
  EXPECT_EQ(back.message.substr(0, 21), m.message.substr(0, 21));
  EXPECT_FALSE(back.eligible);
  EXPECT_TRUE(back.is_base);
  EXPECT_EQ(back.rows_per_warp, 2);
  EXPECT_EQ(back.extra_axes, m.extra_axes);
  EXPECT_EQ(back.time_us, m.time_us);
  EXPECT_FALSE(back.time_lo_us.has_value());
  EXPECT_EQ(back.time_hi_us, m.time_hi_us);
  EXPECT_EQ(back.samples_us, m.samples_us);
  EXPECT_EQ(back.bytes, m.bytes);
  EXPECT_FALSE(back.max_error_ulp.has_value()) << "a NaN is no number in JSON";
  EXPECT_EQ(back.facts.binary_hash, "hash");
  EXPECT_EQ(back.clocks, m.clocks);
}

TEST(Protocol, RequestsArriveAsTheyWere) {
  MeasureRequest r;
  r.workload = Workload::of(Operation::softmax, Dtype::f16, Shape::of(3, 5));
  r.config = "a.b1", r.eligible = false, r.is_base = true, r.attempt = 2, r.time_to_beat_us = 1.5;
  r.limits.max_seconds = 0.25;
  const MeasureRequest back = measure_request_from(through_a_line(to_json(r)));
  EXPECT_EQ(back.workload, r.workload);
  EXPECT_EQ(back.config, r.config);
  EXPECT_EQ(back.attempt, 2);
  EXPECT_EQ(back.time_to_beat_us, 1.5);
  EXPECT_EQ(back.limits.max_seconds, 0.25);
  InterleaveRequest i;
  i.workload = r.workload, i.configs = {"a.b1", "b.b2"}, i.fresh_buffers = true, i.rounds = 4, i.max_seconds = 2;
  const InterleaveRequest j = interleave_request_from(through_a_line(to_json(i)));
  EXPECT_EQ(j.configs, i.configs);
  EXPECT_TRUE(j.fresh_buffers);
  EXPECT_EQ(j.rounds, 4);
}

TEST(WorkerProcess, LaunchersAreSplitIntoWords) {
  EXPECT_EQ(split_words("srun --gpus=1"), (std::vector<std::string>{"srun", "--gpus=1"}));
  EXPECT_EQ(split_words("  ssh  'a host' \"\" x"), (std::vector<std::string>{"ssh", "a host", "", "x"}));
  EXPECT_TRUE(split_words(" ").empty());
  EXPECT_THROW(split_words("env 'A=1"), UsageError);
}

TEST(WorkerProcess, LinesTimeoutsAndHowItEnded) {
  std::string line;
  {
    WorkerProcess cat({"cat"});
    EXPECT_TRUE(cat.send("one\ntwo"));
    EXPECT_EQ(cat.read_line(line, 10), WorkerProcess::Reading::line);
    EXPECT_EQ(line, "one");
    EXPECT_EQ(cat.read_line(line, 10), WorkerProcess::Reading::line);
    EXPECT_EQ(line, "two");
    EXPECT_EQ(cat.read_line(line, 0.05), WorkerProcess::Reading::timeout);
  }
  WorkerProcess shell({"sh", "-c", "echo last; kill -9 $$"});
  EXPECT_EQ(shell.read_line(line, 10), WorkerProcess::Reading::line);
  EXPECT_EQ(shell.read_line(line, 10), WorkerProcess::Reading::closed);
  EXPECT_NE(shell.obituary().find("signal 9"), std::string::npos);
  WorkerProcess leaver({"sh", "-c", "exit 7"});
  EXPECT_EQ(leaver.read_line(line, 10), WorkerProcess::Reading::closed);
  EXPECT_EQ(leaver.obituary(), "ended with exit code 7");
  EXPECT_THROW(WorkerProcess({"/no/such/program"}), EnvironmentError);
}

}  // namespace
}  // namespace rowtune
