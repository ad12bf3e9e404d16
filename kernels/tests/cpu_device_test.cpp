// The cpu device as the tuner sees it: what it says of itself, its buffers, its checks, its times, its errors.

#include "kernels/cpu/cpu_device.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "kernels/algorithms.hpp"
#include "kernels/tests/cpu_support.hpp"

namespace rowtune {
namespace {

Workload small(Operation op, Regime regime = Regime::warm) {
  return Workload::of(op, Dtype::f32, Shape::of(64, 256), regime);
}

TEST(CpuDevice, SaysWhatItIs) {
  const DeviceInfo info = cpu_device_info();
  EXPECT_EQ(info.id, "cpu");
  EXPECT_EQ(info.kind, DeviceKind::cpu);
  EXPECT_TRUE(info.usable);
  EXPECT_FALSE(info.model.empty());
  EXPECT_NE(info.limits.find("simd="), std::string::npos) << info.limits;
  EXPECT_NE(info.toolchain.find("Highway"), std::string::npos) << info.toolchain;
  EXPECT_GE(info.units, 1);
  EXPECT_GE(info.architecture, 1);
  EXPECT_GT(info.memory_bytes, 0);
  const auto device = open_cpu_device();
  EXPECT_EQ(device->info().limits, info.limits);
  EXPECT_EQ(device->source_fingerprint(Operation::softmax), open_cpu_device()->source_fingerprint(Operation::softmax));
  EXPECT_GE(device->source_fingerprint(Operation::softmax).size(), 16u);
}

TEST(CpuDevice, RunsItsWholeSpaceForEveryOperation) {
  const auto device = open_cpu_device();
  for (Operation op : all_operations()) {
    const Workload w = small(op);
    const auto bench = device->open(w);
    const Space space = enumerate_space(w, device->info());
    EXPECT_GE(space.configs.size(), 3u);
    for (const Config& config : space.configs) {
      const auto kernel = bench->load(config);
      const Verification v = kernel->verify();
      EXPECT_TRUE(v.right) << to_string(w) << ' ' << config.name() << ": " << v.what;
      EXPECT_TRUE(kernel->sample() > 0) << config.name();
      EXPECT_TRUE(kernel->verify().right) << to_string(w) << ' ' << config.name() << " after timing";
    }
  }
}

TEST(CpuDevice, SpacesStaySmallAndHoldTheBase) {
  DeviceInfo info = cpu_device_info();
  info.units = 2;
  for (Operation op : all_operations())
    for (Dtype dtype : tensor_dtypes())
      for (const char* shape : {"1x1", "65536x64", "4096x1000", "64x50000", "8x128256", "1x152064", "1x1048576", "0x5",
                                "5x0", "4097x1023", "1024x16", "100x100:ld=101:off=1"}) {
        const Workload w = Workload::of(op, dtype, parse_shape(shape));
        const Space space = enumerate_space(w, info);
        EXPECT_LE(space.configs.size(), 40u) << to_string(w);
        EXPECT_NE(std::find(space.configs.begin(), space.configs.end(), space.base), space.configs.end());
        EXPECT_TRUE(is_eligible(DeviceKind::cpu, space.base));
        std::set<std::string> names;
        for (const Config& config : space.configs) {
          EXPECT_TRUE(names.insert(config.name()).second) << config.name() << " twice";
          EXPECT_EQ(parse_config(config.name(), w, info), config);
          for (char axis : {'b', 'r', 'v', 's'}) EXPECT_GE(config.get(axis, 0), 1) << config.name();
        }
      }
}

TEST(CpuDevice, ColdRotatesThroughMoreThanTheCacheCanHold) {
  const auto device = open_cpu_device();
  const auto cold = device->open(Workload::of(Operation::rmsnorm, Dtype::bf16, Shape::of(1000, 4096), Regime::cold));
  EXPECT_GE(cold->bytes_in_rotation(), 56 << 20);  // 64 MiB at least, less what alignment takes
  const auto warm = device->open(small(Operation::rmsnorm));
  EXPECT_EQ(warm->bytes_in_rotation(), bytes_moved(small(Operation::rmsnorm)));
  EXPECT_GE(warm->launches_per_sample(), 2);
}

TEST(CpuDevice, RefusesOverlappedLaunches) {
  const auto bench = open_cpu_device()->open(small(Operation::copy, Regime::overlapped));
  try {
    bench->load(cpu_base_config(small(Operation::copy), cpu_device_info()));
    FAIL() << "accepted";
  } catch (const ConfigFailure& failure) {
    EXPECT_EQ(failure.outcome, Outcome::launch_error);
    EXPECT_NE(std::string(failure.what()).find("cold or warm"), std::string::npos) << failure.what();
  }
}

TEST(CpuDevice, SaysThatATensorDoesNotFit) {
  try {
    open_cpu_device()->open(Workload::of(Operation::copy, Dtype::f32, Shape::of(2147483647, 2147483647)));
    FAIL() << "accepted";
  } catch (const ConfigFailure& failure) {
    EXPECT_EQ(failure.outcome, Outcome::out_of_memory);
  }
}

TEST(CpuDevice, RefusesConfigsThatAreNoConfigs) {
  const auto device = open_cpu_device();
  const Workload w = small(Operation::softmax);
  for (const char* name : {"threepass.b0.r1.v4.s1.k1.p0.n0", "threepass.b1.r2.v4.s1.k1.p0.n0", "nothing.b1",
                           "threepass.b1.r1.v3.s1.k1.p0.n0", "threepass.b1.r1.v4.s1.k2.p0.n0", "copy.b1.r1.v4.s1.n0",
                           "registers.b1.r1.v1.s1.p0.n0"})
    EXPECT_THROW(parse_config(name, w, device->info()), UsageError) << name;
}

// The check itself must be able to fail: each damage is one that a kernel could do.
class CpuVerification : public testing::Test {
 protected:
  Workload w = small(Operation::layernorm);
  Config config = cpu_base_config(w, cpu_device_info());
  cpu::Slot inputs{w}, run{w};
  std::optional<cpu::Expectation> expected;

  void SetUp() override {
    cpu::fill_with_test_data(inputs, w, 1);
    expected.emplace(w, inputs, 1);
    cpu::copy_inputs(run, inputs);
    cpu::Launcher launcher(w, config);
    launcher(run.tensors(w));
    ASSERT_TRUE(expected->check(run, inputs, config).right);
  }
  std::string complaint() { return expected->check(run, inputs, config).what; }
};

TEST_F(CpuVerification, SeesOneWrongElement) {
  auto* row = reinterpret_cast<float*>(run.output->row(63));
  row[255] *= 1.001f;
  EXPECT_NE(complaint().find("row 63, column 255"), std::string::npos) << complaint();
}

TEST_F(CpuVerification, SeesANaN) {
  reinterpret_cast<float*>(run.output->row(5))[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(complaint().find("row 5, column 0"), std::string::npos) << complaint();
  EXPECT_TRUE(std::isnan(expected->check(run, inputs, config).max_error_ulp));
}

TEST_F(CpuVerification, SeesADeadCanary) {
  reinterpret_cast<float*>(run.output->row(63))[256] = 0;
  EXPECT_NE(complaint().find("after the last row"), std::string::npos) << complaint();
}

TEST_F(CpuVerification, SeesAnInputThatWasWritten) {
  reinterpret_cast<float*>(run.input.row(7))[3] += 1;
  EXPECT_NE(complaint().find("row 7 of an input"), std::string::npos) << complaint();
}

TEST(CpuGuards, StandInTheGapsBetweenRows) {
  cpu::GuardedMatrix m(3, 5, 8, 1, 2);
  m.fill(0);
  EXPECT_EQ(m.damage(), "");
  m.row(1)[10] = std::byte{0};
  EXPECT_EQ(m.damage(), "something was written in the gap after row 1");
}

}  // namespace
}  // namespace rowtune
