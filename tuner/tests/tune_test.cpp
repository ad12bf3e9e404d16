#include "tuner/tune.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "tuner/identity.hpp"
#include "tuner/tests/fake_device.hpp"

namespace rowtune {
namespace {

class Recorder : public TuneObserver {
 public:
  void measured(const TuneStatus& status, const db::Measurement& m) override {
    order.push_back(to_string(m.key.workload) + " " + m.key.config);
    last = status;
    last.workload = nullptr;
  }
  void warning(const std::string& text) override { warnings.push_back(text); }
  std::vector<std::string> order, warnings;
  TuneStatus last;
};

class Tune : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("rowtune-tune-test-" + std::to_string(getpid()) + "-" +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    database_.emplace(db::Database::open((folder_ / "t.db").string(), db::Database::Mode::read_write));
    device_.times["fast.b64.v2"] = 5;
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  TuneReport tune(const std::vector<Workload>& workloads) {
    device_.loaded.clear();
    observer_ = {};
    Tuner tuner(device_, measurer_, *database_, settings_, observer_, stop_, [this] { return device_.clock; });
    const Plan plan = make_plan(workloads, device_, fake_spaces(), *database_);
    return tuner.run(plan);
  }
  std::vector<std::string> winners() const {
    std::vector<std::string> out;
    for (const auto& row : database_->best({})) out.push_back(row.op + " " + row.config);
    return out;
  }

  static constexpr std::size_t space_size = 13;
  FakeDevice device_;
  DeviceMeasurer measurer_{device_, [this] { return device_.clock; }};
  std::filesystem::path folder_;
  std::optional<db::Database> database_;
  TuneSettings settings_;
  Recorder observer_;
  std::atomic<bool> stop_{false};
  const Workload softmax_ = Workload::of(Operation::softmax, Dtype::bf16, Shape::of(64, 100));
  const Workload rmsnorm_ = Workload::of(Operation::rmsnorm, Dtype::f32, Shape::of(8, 300));
};

TEST_F(Tune, MeasuresCeilingsFirstThenEveryConfigAndFindsTheWinner) {
  const TuneReport report = tune({softmax_});
  EXPECT_EQ(report.measured, 2 * space_size);
  EXPECT_EQ(report.left, 0u);
  EXPECT_FALSE(report.interrupted);
  EXPECT_EQ(database_->measurement_count(), static_cast<std::int64_t>(2 * space_size));
  EXPECT_TRUE(observer_.order.front().starts_with("copy"));
  EXPECT_EQ(winners(), (std::vector<std::string>{"copy fast.b64.v2", "softmax fast.b64.v2"}));
  EXPECT_EQ(observer_.last.done, observer_.last.total);
}

TEST_F(Tune, BaseComesFirstInEveryWorkload) {
  tune({softmax_, rmsnorm_});
  for (const char* op : {"copy bf16", "copy f32", "softmax", "rmsnorm"}) {
    const auto first = std::find_if(observer_.order.begin(), observer_.order.end(),
                                    [&](const std::string& line) { return line.starts_with(op); });
    ASSERT_NE(first, observer_.order.end());
    EXPECT_TRUE(first->ends_with("slow.b32.v1")) << *first;
  }
}

TEST_F(Tune, CompilesBeforeItMeasures) {
  tune({softmax_});
  for (const std::string& line : device_.loaded) EXPECT_TRUE(device_.compiled.contains(line)) << line;
}

TEST_F(Tune, CompilesTheFinalistsOfAnEarlierRun) {
  settings_.finals = false;
  tune({softmax_});
  device_.compiled.clear();  // another machine, whose cache is empty
  settings_.finals = true;
  EXPECT_EQ(tune({softmax_}).measured, 0u);
  EXPECT_GE(device_.loaded.size(), 2u);
  for (const std::string& line : device_.loaded) EXPECT_TRUE(device_.compiled.contains(line)) << line;
}

TEST_F(Tune, ResumingMeasuresNothingTwice) {
  tune({softmax_});
  const auto before = database_->measurements(key_of(device_, softmax_));
  const TuneReport again = tune({softmax_});
  EXPECT_EQ(again.measured, 0u);
  EXPECT_TRUE(device_.loaded.empty());
  const auto after = database_->measurements(key_of(device_, softmax_));
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].measured_at, after[i].measured_at);
}

TEST_F(Tune, AnotherKernelSourceIsMeasuredAnew) {
  tune({softmax_});
  device_.fingerprint = "v2-";
  device_.times = {{"fast.b32.v1", 4.0}};
  EXPECT_EQ(tune({softmax_}).measured, 2 * space_size);
  EXPECT_EQ(winners(), (std::vector<std::string>{"copy fast.b32.v1", "softmax fast.b32.v1"}));
}

TEST_F(Tune, AnotherUnitOfTheModelPoolsUnlessTheSameIsWanted) {
  device_.edit().uuid = "unit-1";
  DeviceMeasurer first(device_, [this] { return device_.clock; });
  const auto tune_on = [&](DeviceMeasurer& measurer) {
    device_.loaded.clear();
    Tuner tuner(device_, measurer, *database_, settings_, observer_, stop_, [this] { return device_.clock; });
    return tuner.run(make_plan({softmax_}, device_, fake_spaces(), *database_, settings_.same_unit));
  };
  tune_on(first);
  device_.edit().uuid = "unit-2";
  DeviceMeasurer second(device_, [this] { return device_.clock; });
  EXPECT_EQ(tune_on(second).measured, 0u);
  settings_.same_unit = true;
  EXPECT_EQ(tune_on(second).measured, 2 * space_size);
  EXPECT_EQ(database_->measurement_count(), static_cast<std::int64_t>(2 * space_size)) << "replaced, not added";
  for (const auto& m : database_->measurements(key_of(device_, softmax_))) EXPECT_EQ(m.provenance.uuid, "unit-2");
  EXPECT_EQ(tune_on(second).measured, 0u);
}

TEST_F(Tune, AutoMeasuresAPartAndHeedsWhatTheDatabaseKnows) {
  settings_.strategy = "auto";
  const TuneReport report = tune({softmax_});
  EXPECT_LT(report.measured, space_size);
  EXPECT_EQ(report.left, 0u);
  EXPECT_EQ(observer_.last.done, observer_.last.total);
  Workload alike = softmax_;
  alike.shape = Shape::of(64, 128);
  const TuneReport next = tune({alike});
  EXPECT_LE(next.measured, report.measured);
  EXPECT_EQ(tune({softmax_, alike}).measured, 0u) << "a strategy that ended stays ended";
}

TEST_F(Tune, TwoTunersShareAQueueAndPoolTheirResults) {
  settings_.workers = 2;
  const auto queue = std::make_shared<WorkQueue>(4);
  const Plan plan = make_plan({softmax_, rmsnorm_}, device_, fake_spaces(), *database_);
  ASSERT_EQ(plan.workloads.size(), 4u);
  ASSERT_EQ(queue->take(0, this), WorkQueue::Taken::unchanged);  // as if another had it
  Tuner tuner(
      device_, measurer_, *database_, settings_, observer_, stop_, [this] { return device_.clock; }, queue);
  EXPECT_EQ(tuner.run(plan).measured, 3 * space_size);
  queue->give_back(0, false);
  FakeDevice other;
  DeviceMeasurer measurer(other, [&other] { return other.clock; });
  Tuner second(
      other, measurer, *database_, settings_, observer_, stop_, [&other] { return other.clock; }, queue);
  EXPECT_EQ(second.run(plan).measured, space_size);
  EXPECT_TRUE(queue->all_finished());
}

TEST_F(Tune, FailuresAreRecordedAndTheRestGoesOn) {
  device_.failures = {{"fast.b64.v2", Outcome::wrong_result}, {"fast.b32.v1", Outcome::compile_error}};
  const TuneReport report = tune({softmax_});
  EXPECT_EQ(report.measured, 2 * space_size);
  EXPECT_EQ(report.failed, 4u);
  const auto failures = database_->failures();
  EXPECT_EQ(failures.size(), 4u);
  for (const auto& failure : failures) EXPECT_FALSE(failure.message.empty());
  for (const std::string& winner : winners()) EXPECT_FALSE(winner.ends_with("fast.b64.v2"));
}

TEST_F(Tune, AFailedConfigIsNotTriedAgain) {
  device_.failures = {{"fast.b64.v2", Outcome::crash}};
  tune({softmax_});
  EXPECT_EQ(tune({softmax_}).measured, 0u);
}

TEST_F(Tune, UnsafeFormsAreMeasuredAndNeverWin) {
  device_.times = {{"unsafe.b32.v1", 1.0}};
  tune({softmax_});
  EXPECT_EQ(device_.samples.contains("unsafe.b32.v1"), true);
  for (const std::string& winner : winners()) EXPECT_EQ(winner.find("unsafe"), std::string::npos);
}

TEST_F(Tune, TheBudgetIsHonouredAndEveryWorkloadGetsAResult) {
  device_.seconds_per_sample = 0.05;
  std::vector<Workload> workloads;
  for (int cols = 100; cols < 110; ++cols)
    workloads.push_back(Workload::of(Operation::softmax, Dtype::f32, Shape::of(64, cols)));
  settings_.budget_seconds = 30;  // 20 workloads with ceilings x 13 configs would take over 100 s
  const TuneReport report = tune(workloads);
  EXPECT_TRUE(report.out_of_budget);
  EXPECT_GT(report.left, 0u);
  // Past the budget goes at most what was in flight: one config, or a round of a final.
  EXPECT_LE(report.seconds, 30 + 1.0);
  const auto best = database_->best({});
  EXPECT_EQ(best.size(), 20u);
  // A fair share: nobody gets far more than another.
  std::size_t least = space_size, most = 0;
  for (const Workload& w : workloads) {
    const std::size_t n = database_->recorded_configs(key_of(device_, w)).size();
    least = std::min(least, n);
    most = std::max(most, n);
  }
  EXPECT_GE(least, 2u);
  EXPECT_LE(most, least + 6);
}

TEST_F(Tune, WhereTimeIsShortEveryWorkloadGetsItsBaseBeforeTheCopies) {
  device_.seconds_per_sample = 1;  // a config takes 4 s and more, ten workloads with ceilings 80 s
  std::vector<Workload> workloads;
  for (int cols = 100; cols < 110; ++cols)
    workloads.push_back(Workload::of(Operation::softmax, Dtype::f32, Shape::of(64, cols)));
  settings_.budget_seconds = 60;
  tune(workloads);
  db::BestQuery query;
  query.op = Operation::softmax;
  EXPECT_EQ(database_->best(query).size(), 10u);
}

TEST_F(Tune, ABudgetThatSufficesIsNotUsedUp) {
  settings_.budget_seconds = 1000;
  const TuneReport report = tune({softmax_});
  EXPECT_FALSE(report.out_of_budget);
  EXPECT_EQ(report.left, 0u);
  EXPECT_LT(report.seconds, 100);
}

TEST_F(Tune, AnInterruptionKeepsWhatIsThereAndTheNextRunDoesTheRest) {
  int samples = 0;
  device_.on_sample = [&] { stop_ = ++samples > 60; };
  const TuneReport report = tune({softmax_});
  EXPECT_TRUE(report.interrupted);
  EXPECT_GT(report.measured, 0u);
  EXPECT_LT(report.measured, 2 * space_size);
  const std::int64_t saved = database_->measurement_count();
  EXPECT_EQ(saved, static_cast<std::int64_t>(report.measured));  // the one in flight is among them

  device_.on_sample = nullptr;
  stop_ = false;
  const TuneReport rest = tune({softmax_});
  EXPECT_EQ(rest.measured + report.measured, 2 * space_size);
  EXPECT_EQ(winners(), (std::vector<std::string>{"copy fast.b64.v2", "softmax fast.b64.v2"}));
}

TEST_F(Tune, BuffersThatDoNotFitLeaveTheOthersAlone) {
  device_.too_big = {to_string(softmax_)};
  const TuneReport report = tune({softmax_, rmsnorm_});
  EXPECT_EQ(observer_.warnings.size(), 1u);
  EXPECT_EQ(report.measured, 3 * space_size + 1);  // two ceilings and rmsnorm; the base of the one that does not fit
  EXPECT_EQ(database_->failures().size(), 1u);
}

TEST_F(Tune, TheFinalDecidesAmongTheBestAndIsStored) {
  std::mt19937_64 random(3);
  device_.noise = [&](const std::string&, int) { return 1 + std::normal_distribution<double>(0, 0.004)(random); };
  device_.times = {{"fast.b64.v2", 5.0}, {"fast.b128.v2", 5.0}, {"fast.b128.v1", 5.12}};
  tune({softmax_});
  const auto decision = database_->decision(key_of(device_, softmax_));
  ASSERT_TRUE(decision.has_value());
  EXPECT_EQ(decision->key.config, "fast.b64.v2");  // the simpler of the tied
  EXPECT_EQ(decision->ties, std::vector<std::string>{"fast.b128.v2"});
  EXPECT_GT(decision->confidence, 0.9);
  db::BestQuery query;
  query.op = Operation::softmax;
  const auto best = database_->best(query);
  ASSERT_EQ(best.size(), 1u);
  EXPECT_TRUE(best[0].decided);
  EXPECT_EQ(best[0].ties, 1);
  // Decided once: the next run holds no final.
  const int opened = device_.opened;
  EXPECT_EQ(tune({softmax_}).finals, 0u);
  EXPECT_EQ(device_.opened, opened);
}

TEST_F(Tune, AWinnerOfASimilarShapeIsTriedRightAfterTheBase) {
  const Workload near = Workload::of(Operation::softmax, Dtype::bf16, Shape::of(64, 110));
  tune({softmax_, near});
  const std::string name = to_string(near);
  const auto first = std::find_if(observer_.order.begin(), observer_.order.end(),
                                  [&](const std::string& line) { return line.starts_with(name); });
  ASSERT_NE(first, observer_.order.end());
  EXPECT_EQ(*(first + 1), name + " fast.b64.v2");
}

TEST_F(Tune, AStrategyThatTakesAFewLeavesTheRest) {
  settings_.strategy = "random";
  settings_.strategy_options.evaluations = 4;
  const TuneReport report = tune({softmax_});
  EXPECT_GE(report.measured, 8u);   // four each
  EXPECT_LE(report.measured, 10u);  // and the base where it was not among them
}

TEST_F(Tune, NonsenseSamplesDoNotEndTheRun) {
  device_.noise = [](const std::string& config, int) { return config == "fast.b64.v2" ? -1.0 : 1.0; };
  const TuneReport report = tune({softmax_});
  EXPECT_EQ(report.measured, 2 * space_size);
  EXPECT_EQ(report.failed, 2u);
}

}  // namespace
}  // namespace rowtune
