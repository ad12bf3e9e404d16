#include "tuner/final.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tuner/tests/fake_device.hpp"

namespace rowtune {
namespace {

Config config(const std::string& name) { return split_config_name(name); }

class FinalTest : public testing::Test {
 protected:
  FinalResult hold(const std::vector<Contender>& contenders) {
    return hold_final(measurer_, workload_, contenders, settings_, stop_, [this] { return device_.clock; });
  }
  void add_noise(double sigma) {
    device_.noise = [this, sigma](const std::string&, int) {
      return 1 + std::normal_distribution<double>(0, sigma)(random_);
    };
  }

  FakeDevice device_;
  DeviceMeasurer measurer_{device_, [this] { return device_.clock; }};
  Workload workload_ = Workload::of(Operation::softmax, Dtype::bf16, Shape::of(64, 100));
  FinalSettings settings_ = [] {
    FinalSettings settings;
    settings.max_seconds = 100;
    return settings;
  }();
  std::atomic<bool> stop_{false};
  std::mt19937_64 random_{11};
};

TEST_F(FinalTest, TheBestFewEnterAndTheBaseFromFurtherAway) {
  std::vector<Contender> all;
  for (int i = 0; i < 10; ++i)
    all.push_back({config("a.b" + std::to_string(i + 1)), 10 + 0.05 * i, 10 + 0.05 * i, false});
  all.push_back({config("late.b1"), 10.6, 10.6, false});
  all.push_back({config("base.b1"), 14, 14, true});
  settings_.finalists = 6;
  const auto entered = enter_final(all, settings_);
  ASSERT_EQ(entered.size(), 7u);
  EXPECT_EQ(entered.front().config.name(), "a.b1");
  EXPECT_TRUE(entered.back().is_base);
  all.push_back({config("noisy.b1"), 40, 9.9, false});
  EXPECT_EQ(enter_final(all, settings_).size(), 8u);  // what its interval leaves open, the final settles
}

TEST_F(FinalTest, TellsTwoPercentApartUnderNoise) {
  add_noise(0.01);
  device_.times = {{"a.b1", 10.0}, {"b.b1", 10.2}, {"base.b1", 12.0}};
  const auto result =
      hold({{config("b.b1"), 10, 10, false}, {config("a.b1"), 10, 10, false}, {config("base.b1"), 12, 12, true}});
  EXPECT_EQ(result.winner, "a.b1");
  EXPECT_TRUE(result.ties.empty());
  EXPECT_TRUE(result.settled);
}

TEST_F(FinalTest, TiesGoToTheSimplestAndAreNamed) {
  add_noise(0.001);
  device_.times = {{"a.b256.s4", 10.0}, {"a.b128.s1", 10.01}, {"a.b256.s1", 10.0}};
  const auto result = hold({{config("a.b256.s4"), 10, 10, false},
                            {config("a.b128.s1"), 10, 10, false},
                            {config("a.b256.s1"), 10, 10, false}});
  EXPECT_EQ(result.winner, "a.b128.s1");
  EXPECT_EQ(result.ties, (std::vector<std::string>{"a.b256.s4", "a.b256.s1"}));
}

TEST_F(FinalTest, ATieThatIsALittleSlowerIsNamedAndDoesNotWin) {
  add_noise(0.001);
  device_.times = {{"a.b256.s1", 10.0}, {"a.b128.s1", 10.05}, {"a.b64.s1", 10.2}};
  const auto result = hold({{config("a.b256.s1"), 10, 10, false},
                            {config("a.b128.s1"), 10, 10, false},
                            {config("a.b64.s1"), 10, 10, false}});
  EXPECT_EQ(result.winner, "a.b256.s1");
  EXPECT_EQ(result.ties, std::vector<std::string>{"a.b128.s1"});
}

TEST_F(FinalTest, TheBaseWinsATie) {
  device_.times = {{"a.b1", 10.0}, {"base.b512.s8", 10.02}};
  const auto result = hold({{config("a.b1"), 10, 10, false}, {config("base.b512.s8"), 10, 10, true}});
  EXPECT_EQ(result.winner, "base.b512.s8");
}

TEST_F(FinalTest, ASimplerConfigSlowerThanTheBaseDoesNotWin) {
  // 3 % noise on the simple one only: it cannot be told from the leader, the base can.
  device_.noise = [this](const std::string& name, int) {
    return name == "a.b1" ? 1 + std::uniform_real_distribution<double>(-0.3, 0.3)(random_) : 1.0;
  };
  device_.times = {{"a.b1", 10.5}, {"a.b64", 10.0}, {"base.b32", 10.2}};
  const auto result =
      hold({{config("a.b64"), 10, 10, false}, {config("base.b32"), 10, 10, true}, {config("a.b1"), 10, 10, false}});
  const auto median_of = [&](const std::string& name) {
    return std::find_if(result.finalists.begin(), result.finalists.end(),
                        [&](const Finalist& f) { return f.contender.config.name() == name; })
        ->estimate.median;
  };
  EXPECT_LE(median_of(result.winner), median_of("base.b32"));
}

TEST_F(FinalTest, WhatTooFewRoundsCannotTellApartIsNoTie) {
  // Six rounds are too few for the confidence that five comparisons ask for: no verdict on any, not even on the base.
  settings_.rounds = 6, settings_.max_allocations = settings_.min_allocations = 1;
  device_.times = {{"a.b512", 4.0}, {"a.b256", 4.005}, {"a.b128", 4.2}, {"a.b64", 4.3}, {"base.b32", 50.0}};
  std::vector<Contender> all{{config("base.b32"), 50, 50, true}};
  for (const char* name : {"a.b512", "a.b256", "a.b128", "a.b64"}) all.push_back({config(name), 4, 4, false});
  const auto result = hold(all);
  EXPECT_FALSE(result.settled);
  EXPECT_TRUE(result.worth_keeping);
  EXPECT_EQ(result.winner, "a.b256") << "as fast by its own median, and simpler";
  EXPECT_EQ(result.ties, std::vector<std::string>{"a.b512"});
}

TEST_F(FinalTest, ClearLosersStopBeingSampledTheBaseDoesNot) {
  add_noise(0.004);  // keeps the two leaders undecided for a while
  settings_.margin = 0.0001;
  device_.times = {{"a.b1", 10.0}, {"b.b1", 10.0}, {"c.b1", 11.0}, {"base.b1", 11.0}};
  hold({{config("a.b1"), 10, 10, false},
        {config("b.b1"), 10, 10, false},
        {config("c.b1"), 10, 10, false},
        {config("base.b1"), 11, 11, true}});
  EXPECT_LT(device_.samples["c.b1"], device_.samples["a.b1"]);
  EXPECT_EQ(device_.samples["base.b1"], device_.samples["a.b1"]);
}

TEST_F(FinalTest, AFarSlowerBaseLeavesAfterTheFirstAllocation) {
  device_.times = {{"a.b1", 10.0}, {"b.b1", 10.0}, {"base.b1", 30.0}};
  hold({{config("a.b1"), 10, 10, false}, {config("b.b1"), 10, 10, false}, {config("base.b1"), 30, 30, true}});
  EXPECT_EQ(device_.samples["base.b1"], settings_.rounds + 1);  // and the one that warms up
}

TEST_F(FinalTest, SeveralAllocationsAndAnEndByTimeOrSignal) {
  device_.times = {{"a.b1", 10.0}, {"b.b1", 11.0}};
  hold({{config("a.b1"), 10, 10, false}, {config("b.b1"), 11, 11, false}});
  EXPECT_EQ(device_.opened, settings_.min_allocations);
  stop_ = true;
  device_.opened = 0;
  EXPECT_NO_THROW(hold({{config("a.b1"), 10, 10, false}, {config("b.b1"), 11, 11, false}}));
  EXPECT_EQ(device_.opened, 0);  // the buffers that were there
  stop_ = false;
  settings_.max_seconds = 0;
  const auto result = hold({{config("a.b1"), 10, 10, false}, {config("b.b1"), 11, 11, false}});
  EXPECT_FALSE(result.settled);  // one round tells nothing
  EXPECT_FALSE(result.worth_keeping);
  EXPECT_EQ(result.winner, "a.b1");
}

}  // namespace
}  // namespace rowtune
