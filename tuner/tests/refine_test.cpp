#include "tuner/refine.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "kernels/cuda/known_devices.hpp"
#include "tuner/dispatch_refine.hpp"
#include "tuner/identity.hpp"
#include "tuner/tests/fake_device.hpp"

namespace rowtune {
namespace {

/// Of bf16 and f32 softmax alike: `fast.b64.v2` is best at 256 and at 4096 columns, and the rule takes it for what lies
/// between; but there it is four times as slow as `fast.b128.v1`, which comes second on either side. Costs of few rows
/// are the same.
double landscape(const Workload& w, const std::string& config) {
  const auto cols = static_cast<double>(w.shape.cols);
  const bool between = cols > 300 && cols < 3500;
  const double slowdown = config == "fast.b64.v2"    ? (between ? 4.4 : 1.0)
                          : config == "fast.b128.v1" ? 1.1
                          : config == "slow.b32.v1"  ? 3.0
                                                     : 2.0;
  return 5 * slowdown * std::max(1.0, static_cast<double>(w.shape.rows) * cols / 1e5);
}

/// As if of a GPU: each algorithm has columns that suit it, each length of rows threads that do.
double gpu_landscape(const Workload& w, const std::string& name) {
  const Config config = split_config_name(name);
  const double cols = std::log2(static_cast<double>(w.shape.cols));
  const double suits = config.algorithm == "lanes" ? 7 : config.algorithm == "block" ? 12 : 15;
  const double threads = std::log2(config.block_size());
  const double slowdown = 0.1 * std::abs(cols - suits) + 0.15 * std::abs(threads - std::min(10.0, cols - 4)) +
                          0.01 * static_cast<double>(name.size() % 7);
  return (2 + 1e-5 * static_cast<double>(w.shape.rows * w.shape.cols)) * (1 + slowdown);
}

class NoOne : public TuneObserver {};

class Refine : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("rowtune-refine-test-" + std::to_string(getpid()) + "-" +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    database_.emplace(db::Database::open((folder_ / "t.db").string(), db::Database::Mode::read_write));
    device_.time_of = landscape;
    settings_.only.regime = Regime::cold;
    settings_.budget_seconds = 1e6;
    settings_.places = 24;
  }
  void TearDown() override {
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  TuneReport tune(const std::vector<Workload>& workloads, const std::string& strategy = "exhaustive") {
    TuneSettings settings;
    settings.strategy = strategy;
    return run(make_plan(workloads, device_, spaces_, *database_), settings);
  }
  /// The corners of a plane.
  void tune_grid(Dtype dtype = Dtype::bf16) {
    std::vector<Workload> workloads;
    for (const int rows : {16, 1024})
      for (const int cols : {256, 4096}) workloads.push_back(softmax(rows, cols, dtype));
    tune(workloads);
  }
  RefineReport refine_now() {
    device_.loaded.clear();
    said_.clear();
    return refine(
        *database_, spaces_, settings_,
        [this](const std::vector<WantedConfigs>& wanted, double seconds) {
          TuneSettings settings;
          settings.budget_seconds = seconds;
          settings.finals = false;
          return run(make_plan(wanted, device_, spaces_, *database_), settings);
        },
        [this](const std::string& sentence) { said_.push_back(sentence); }, [this] { return device_.clock; });
  }
  std::string answer(const Shape& shape, Dtype dtype = Dtype::bf16) const {
    return lookup(dispatch_tables(*database_), "Fake 1", Operation::softmax, dtype, shape).config;
  }

  static Workload softmax(std::int64_t rows, std::int64_t cols, Dtype dtype = Dtype::bf16) {
    return Workload::of(Operation::softmax, dtype, Shape::of(rows, cols));
  }

  FakeDevice device_;
  Spaces spaces_ = fake_spaces();
  DeviceMeasurer measurer_{device_, [this] { return device_.clock; }};
  std::filesystem::path folder_;
  std::optional<db::Database> database_;
  RefineSettings settings_;
  std::vector<std::string> said_;
  std::atomic<bool> stop_{false};

 private:
  TuneReport run(const Plan& plan, const TuneSettings& settings) {
    NoOne nobody;
    Tuner tuner(device_, measurer_, *database_, settings, nobody, stop_, [this] { return device_.clock; });
    return tuner.run(plan);
  }
};

TEST_F(Refine, MendsAnswersThatWerePredictedWrong) {
  tune_grid();
  const DispatchTables before = dispatch_tables(*database_);
  for (const int cols : {700, 1000, 1600}) EXPECT_EQ(answer(Shape::of(128, cols)), "fast.b64.v2") << cols;
  const RefineReport report = refine_now();
  EXPECT_FALSE(report.out_of_budget);
  for (const int cols : {700, 1000, 1024, 1601})
    for (const int rows : {32, 128, 500})
      EXPECT_EQ(answer(Shape::of(rows, cols)), "fast.b128.v1") << rows << "x" << cols;
  for (const int cols : {256, 4096})
    for (const int rows : {16, 363, 1024})
      EXPECT_EQ(answer(Shape::of(rows, cols)), "fast.b64.v2") << rows << "x" << cols << ": right as it was";

  ASSERT_EQ(report.tables.size(), 1u);
  const RefinedTable& table = report.tables.front();
  EXPECT_GE(table.changed, 5u);
  const auto old_answers = summarise(table.before), new_answers = summarise(table.after);
  EXPECT_EQ(new_answers.unmeasured, 0);
  EXPECT_NEAR(old_answers.worst.value(), 3.0, 0.05);
  EXPECT_LT(new_answers.worst.value(), 0.01);
  EXPECT_EQ(said_.front().substr(0, 21), "softmax bf16, round 1") << said_.front();

  // Entries are of tuned shapes, as before.
  const DispatchTables after = dispatch_tables(*database_);
  ASSERT_EQ(after.tables.size(), 1u);
  EXPECT_EQ(after.tables[0].entries, before.tables[0].entries);
  EXPECT_EQ(after.tables[0].least_cols, before.tables[0].least_cols);
}

TEST_F(Refine, MeasuresFewConfigsNoCopiesAndNoFinals) {
  tune_grid();
  const auto decided = database_->decision(key_of(device_, softmax(16, 256)));
  ASSERT_TRUE(decided.has_value());
  const std::int64_t tuned = database_->measurement_count();
  const RefineReport report = refine_now();
  EXPECT_EQ(database_->measurement_count(), tuned + static_cast<std::int64_t>(report.measured));
  std::map<std::string, int> of_workload;
  for (const std::string& line : device_.loaded) {
    EXPECT_EQ(line.find("copy"), std::string::npos) << line;
    ++of_workload[line.substr(0, line.rfind(' '))];
  }
  EXPECT_EQ(of_workload.size(), report.tables.front().after.size());
  for (const auto& [workload, count] : of_workload) {
    EXPECT_GE(count, 2) << workload;
    EXPECT_LE(count, 11) << workload << " of 12";
  }
  EXPECT_EQ(database_->unswept().size(), of_workload.size());
  db::BestQuery query;
  for (const auto& row : database_->best(query)) {
    const bool off_grid = database_->unswept().contains({row.device_model, row.device_limits, row.workload()});
    EXPECT_EQ(row.decided, !off_grid) << to_string(row.workload());
  }
}

TEST_F(Refine, ASecondRunMeasuresNothing) {
  tune_grid();
  const RefineReport first = refine_now();
  ASSERT_GT(first.measured, 0u);
  const RefineReport second = refine_now();
  EXPECT_EQ(second.measured, 0u);
  EXPECT_TRUE(device_.loaded.empty());
  EXPECT_EQ(second.tables.front().changed, first.tables.front().changed) << "against the table without them";
}

TEST_F(Refine, FailuresAreFactsAndNotTriedAgain) {
  tune_grid();
  device_.failures = {{"fast.b64.v2", Outcome::wrong_result}};
  refine_now();
  EXPECT_EQ(answer(Shape::of(128, 1000)), "fast.b128.v1");
  EXPECT_EQ(refine_now().measured, 0u);
}

TEST_F(Refine, HonoursTheBudgetAndSharesIt) {
  tune_grid(Dtype::bf16);
  tune_grid(Dtype::f32);
  device_.seconds_per_sample = 0.2;  // a config takes two seconds or so
  settings_.budget_seconds = 60;
  const double begin = device_.clock;
  const RefineReport report = refine_now();
  EXPECT_TRUE(report.out_of_budget);
  EXPECT_LE(device_.clock - begin, 60 + 5);
  std::map<Dtype, std::size_t> results;
  for (const auto& [model, limits, place] : database_->unswept())
    results[place.dtype] += database_->recorded_configs(key_of(device_, place)).size();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_NEAR(static_cast<double>(results[Dtype::bf16]), static_cast<double>(results[Dtype::f32]), 6);
  settings_.budget_seconds = 1e6;
  EXPECT_FALSE(refine_now().out_of_budget);
  EXPECT_EQ(refine_now().measured, 0u);
}

TEST_F(Refine, TimeThatOneTableDoesNotNeedGoesToTheOthers) {
  tune_grid(Dtype::bf16);
  refine_now();
  tune_grid(Dtype::f32);
  device_.clock = 0;
  refine_now();  // as long as it takes
  const double alone = device_.clock;
  ASSERT_GT(alone, 0);
  tune_grid(Dtype::f16);
  settings_.budget_seconds = 1.5 * alone;  // a third of it would not do
  EXPECT_FALSE(refine_now().out_of_budget);
}

TEST_F(Refine, AnInterruptionKeepsWhatIsThereAndAnswersStaySound) {
  tune_grid();
  int samples = 0;
  device_.on_sample = [&] { stop_ = ++samples > 30; };
  const RefineReport cut_short = refine_now();
  EXPECT_TRUE(cut_short.interrupted);
  EXPECT_GT(cut_short.measured, 0u);
  // A place where only the base was measured says nothing: the base is not the best there.
  for (const int cols : {300, 700, 1000, 1600, 3000})
    for (const int rows : {16, 128, 1024}) EXPECT_NE(answer(Shape::of(rows, cols)), "base") << rows << "x" << cols;
  device_.on_sample = nullptr;
  stop_ = false;
  const std::int64_t saved = database_->measurement_count();
  const RefineReport rest = refine_now();
  EXPECT_EQ(database_->measurement_count(), saved + static_cast<std::int64_t>(rest.measured));
  EXPECT_EQ(answer(Shape::of(128, 1000)), "fast.b128.v1");
}

TEST_F(Refine, AutoSearchesAPlaceAsIfNobodyHadBeenThere) {
  tune_grid();
  refine_now();
  const auto places = database_->unswept();
  ASSERT_FALSE(places.empty());
  const Workload place = places.begin()->workload;
  const auto known = database_->recorded_configs(key_of(device_, place)).size();
  const TuneReport report = tune({place}, "auto");
  EXPECT_GE(report.measured, 3u) << "known: " << known;
  EXPECT_EQ(database_->unswept().size(), places.size() - 1) << "it is tuned now";
  EXPECT_EQ(tune({place}, "auto").measured, 0u) << "and a search that ended stays ended";
  EXPECT_TRUE(database_->decision(key_of(device_, place)).has_value());
  EXPECT_EQ(tune({softmax(16, 256), softmax(1024, 4096)}).measured, 0u) << "what was tuned is as it was";
}

TEST_F(Refine, PlacesGiveNoHintsToASearch) {
  tune_grid();
  database_.reset();  // so that the file is whole
  std::filesystem::copy_file(folder_ / "t.db", folder_ / "other.db");
  const auto order_of_a_search = [&](bool refined) {
    database_.emplace(
        db::Database::open((folder_ / (refined ? "t.db" : "other.db")).string(), db::Database::Mode::read_write));
    if (refined) refine_now();
    device_.loaded.clear();
    tune({softmax(100, 1000)}, "auto");
    return device_.loaded;
  };
  const auto without = order_of_a_search(false);
  EXPECT_FALSE(without.empty());
  EXPECT_EQ(order_of_a_search(true), without);
}

TEST_F(Refine, TablesOfAGpuKeepTheirKernelsLegalAndFew) {
  device_.edit() = cuda::known_device(90);
  cuda::describe_limits(device_.edit());
  device_.edit().peak_gbps = 0;
  device_.time_of = gpu_landscape;
  spaces_ = Spaces::of(device_.info());
  std::vector<Workload> workloads;
  for (const int rows : {16, 4096})
    for (const int cols : {128, 1024, 16384}) workloads.push_back(softmax(rows, cols));
  tune(workloads, "auto");
  const auto before = dispatch_tables(*database_).tables.at(0);
  const RefineReport report = refine_now();
  const auto after = dispatch_tables(*database_).tables.at(0);
  EXPECT_EQ(after.entries.size(), before.entries.size());
  EXPECT_LE(after.kernels.size(), 48u);
  const auto& table = report.tables.at(0);
  const auto old_answers = summarise(table.before), new_answers = summarise(table.after);
  EXPECT_EQ(new_answers.unmeasured, 0);
  EXPECT_LT(new_answers.p95.value(), 0.05);
  EXPECT_LE(new_answers.median.value(), old_answers.median.value());
  for (const Trial& trial : table.after)
    EXPECT_NO_THROW(parse_config(trial.config, softmax(trial.shape.rows, trial.shape.cols), device_.info()));
  EXPECT_EQ(refine_now().measured, 0u);
}

TEST_F(Refine, ADeviceThatIsNotThereIsNotFound) {
  tune_grid();
  settings_.only.device_model = "Fake 2";
  EXPECT_THROW(refine_now(), NotFoundError);
}

TEST_F(Refine, PlacesAreOffTheGridApartAndTheSameWhateverWasMeasuredThere) {
  tune_grid();
  const auto places = [&] {
    const auto tables = measured_tables(database_->leaderboard({}), database_->unswept());
    return places_off_grid(tables.at(0), {}, 24);
  };
  const auto before = places();
  EXPECT_GE(before.size(), 12u);
  bool ragged = false, aligned = false, beyond = false;
  for (const Shape& shape : before) {
    EXPECT_TRUE(shape.contiguous());
    (shape.cols % 8 == 0 ? aligned : ragged) = true;
    beyond |= shape.cols < 256 || shape.cols > 4096 || shape.rows < 16 || shape.rows > 1024;
    EXPECT_FALSE((shape.rows == 16 || shape.rows == 1024) && (shape.cols == 256 || shape.cols == 4096));
  }
  EXPECT_TRUE(ragged && aligned && beyond);
  refine_now();
  EXPECT_EQ(places(), before);
}

}  // namespace
}  // namespace rowtune
