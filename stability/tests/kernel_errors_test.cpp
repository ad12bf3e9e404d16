#include "stability/kernel_errors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "kernels/errors.hpp"
#include "kernels/oracle.hpp"
#include "kernels/space.hpp"

namespace rowtune::stability {
namespace {

/// A database in which every config of some workloads ran right on a device.
class KernelErrors : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  void tuned(const Workload& w, const std::string& fingerprint = "") {
    db::Database database = db::Database::open(path_, db::Database::Mode::read_write);
    const DeviceInfo& info = device_->info();
    std::vector<db::Measurement> all;
    const Space space = enumerate_space(w, info);
    for (const Config& config : space.configs) {
      db::Measurement m;
      m.key = {info.model,         info.limits,
               info.toolchain,     fingerprint.empty() ? device_->source_fingerprint(w.op) : fingerprint,
               measuring_protocol, w,
               config.name()};
      m.provenance = {"cpu", "", "", "here", "1", "2026-01-01T00:00:00Z"};
      m.is_base = config == space.base;
      m.eligible = is_eligible(info.kind, config);
      m.algorithm = config.algorithm;
      m.time_us = 10.0 + static_cast<double>(all.size());
      m.max_error_ulp = 0.5;
      m.bytes = 1;
      all.push_back(m);
    }
    database.record_all(all);
  }
  db::Database open() { return db::Database::open(path_, db::Database::Mode::read_write); }
  static void quiet(std::size_t, std::size_t, const std::string&) {}

  std::unique_ptr<Device> device_ = open_device("cpu");
  std::string path_ =
      (std::filesystem::temp_directory_path() / ("rowtune_kernel_errors_" + std::to_string(::getpid()) + ".db"))
          .string();
};

TEST_F(KernelErrors, OnePassIsWorseThanTwoPassesWhereTheMeanIsLarge) {
  tuned(Workload::of(Operation::layernorm, Dtype::f32, parse_shape("4x1000")));
  db::Database database = open();
  const KernelErrorsCounts counts = measure_kernels(*device_, database, {}, quiet);
  EXPECT_GT(counts.configs, 10);
  EXPECT_EQ(counts.failed, 0);
  double one_pass = 0, eligible = 0, on_normal = 0;
  for (const db::AccuracyRow& row : database.accuracy()) {
    ASSERT_TRUE(row.accuracy.max_error_ulp.has_value()) << row.accuracy.key.config << ' ' << row.accuracy.input;
    EXPECT_EQ(row.accuracy.elements, 1000);
    EXPECT_LE(*row.accuracy.mean_error_ulp, *row.accuracy.max_error_ulp);
    const double ulp = *row.accuracy.max_error_ulp;
    if (row.accuracy.input == "mean/sd 100")
      (row.eligible ? eligible : one_pass) = std::max(row.eligible ? eligible : one_pass, ulp);
    if (row.accuracy.input == "normal" && row.eligible) on_normal = std::max(on_normal, ulp);
  }
  EXPECT_LT(on_normal, 8);    // some roundings of fp32
  EXPECT_LT(eligible, 300);   // the mean itself is rounded to 50 ulps of the output
  EXPECT_GT(one_pass, 1000);  // its variance is that of numbers 10,000 times larger
}

TEST_F(KernelErrors, BestRespectsThem) {
  const Workload w = Workload::of(Operation::layernorm, Dtype::f32, parse_shape("4x1000"));
  tuned(w);
  db::Database database = open();
  db::BestQuery strict;
  strict.max_error_ulp = 8;
  ASSERT_EQ(database.best(strict).size(), 1u);  // by the check before timing alone
  measure_kernels(*device_, database, {}, quiet);
  EXPECT_TRUE(database.best(strict).empty());
  strict.max_error_ulp = 300;
  EXPECT_EQ(database.best(strict).size(), 1u);
}

TEST_F(KernelErrors, WorkloadsThatDifferInRowsShareALaunch) {
  tuned(Workload::of(Operation::softmax, Dtype::bf16, parse_shape("4x96")));
  tuned(Workload::of(Operation::softmax, Dtype::bf16, parse_shape("64x96")));
  db::Database database = open();
  const KernelErrorsCounts counts = measure_kernels(*device_, database, {}, quiet);
  const std::size_t inputs = kernel_inputs(Workload::of(Operation::softmax, Dtype::bf16, parse_shape("4x96"))).size();
  std::size_t names = 0, rows = 0;
  for (const char* shape : {"4x96", "64x96"}) {
    db::BestQuery query;
    query.shape = parse_shape(shape);
    names = std::max(names, database.leaderboard(query).size());
    rows += database.leaderboard(query).size() * inputs;
  }
  EXPECT_EQ(static_cast<std::size_t>(counts.configs), names);
  EXPECT_EQ(database.accuracy().size(), rows);
  EXPECT_EQ(measure_kernels(*device_, database, {}, quiet).configs, 0);  // nothing is left to do
  KernelErrorsRequest again;
  again.again = true;
  EXPECT_EQ(measure_kernels(*device_, database, again, quiet).configs, counts.configs);
}

TEST_F(KernelErrors, EveryOperationAndLayoutIsWithinReach) {
  for (Operation op : {Operation::softmax, Operation::log_softmax, Operation::layernorm, Operation::rmsnorm,
                       Operation::fused_add_rmsnorm})
    for (Dtype dtype : {Dtype::f16, Dtype::bf16}) tuned(Workload::of(op, dtype, parse_shape("3x65:ld=67:off=1")));
  db::Database database = open();
  EXPECT_EQ(measure_kernels(*device_, database, {}, quiet).failed, 0);
  bool unsafe_failed = false;
  for (const db::AccuracyRow& row : database.accuracy()) {
    const db::Accuracy& a = row.accuracy;
    if (!row.eligible) {
      unsafe_failed |= !a.max_error_ulp.has_value() && a.input == "sd 10, all below -88";  // 0 / 0
      continue;
    }
    ASSERT_TRUE(a.max_error_ulp.has_value()) << to_string(a.key.workload) << ' ' << a.key.config << ' ' << a.input;
    EXPECT_LT(*a.max_error_ulp, 1) << to_string(a.key.workload) << ' ' << a.key.config << ' ' << a.input;
  }
  EXPECT_TRUE(unsafe_failed);
}

/// Computes like the cpu, but one element of each row by one per cent too large.
class OffByOnePercent : public Device {
 public:
  explicit OffByOnePercent(Device& device) : device_(device) {}
  const DeviceInfo& info() const override { return device_.info(); }
  std::unique_ptr<Bench> open(const Workload& w) override { return device_.open(w); }
  std::string source_fingerprint(Operation op) const override { return device_.source_fingerprint(op); }
  void compute(const Workload& w, const Config& config, const HostTensors& tensors) override {
    device_.compute(w, config, tensors);
    for (std::int64_t r = 0; r < w.shape.rows; ++r) {
      const std::int64_t at = w.shape.off + r * w.shape.ld + w.shape.cols - 1;
      store_element(w.dtype, tensors.output, at, 1.01 * load_element(w.dtype, tensors.output, at));
    }
  }

 private:
  Device& device_;
};

TEST_F(KernelErrors, OneWrongElementShows) {
  tuned(Workload::of(Operation::softmax, Dtype::f32, parse_shape("4x100")));
  db::Database database = open();
  OffByOnePercent wrong(*device_);
  measure_kernels(wrong, database, {}, quiet);
  for (const db::AccuracyRow& row : database.accuracy())
    if (row.accuracy.input == "normal") {
      EXPECT_NEAR(*row.accuracy.max_rel_error, 0.01, 1e-4);
      EXPECT_GT(*row.accuracy.max_error_ulp, 0.005 * 0x1p23);
    }
}

TEST_F(KernelErrors, OtherSourcesAreLeftOut) {
  tuned(Workload::of(Operation::softmax, Dtype::f32, parse_shape("4x100")), "an older kernel");
  db::Database database = open();
  const KernelErrorsCounts counts = measure_kernels(*device_, database, {}, quiet);
  EXPECT_EQ(counts.configs, 0);
  EXPECT_GT(counts.outdated, 0);
  EXPECT_TRUE(database.accuracy().empty());
}

TEST_F(KernelErrors, TheTableHasALineForEachInput) {
  const Workload w = Workload::of(Operation::softmax, Dtype::f32, parse_shape("4x100"));
  tuned(w);
  db::Database database = open();
  measure_kernels(*device_, database, {}, quiet);
  const Table table = kernel_errors_table(database.accuracy());
  EXPECT_EQ(table.rows.size(), kernel_inputs(w).size());
}

}  // namespace
}  // namespace rowtune::stability
