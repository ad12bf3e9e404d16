#include "tuner/strategy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/errors.hpp"

namespace rowtune {
namespace {

/// 2 algorithms x 6 x 5 x 4 configs with one smooth valley: log2 distance from b=128, v=4, s=1 of `good`.
std::vector<Config> valley() {
  std::vector<Config> configs;
  for (const char* algorithm : {"bad", "good"})
    for (int b : {32, 64, 128, 256, 512, 1024})
      for (int v : {1, 2, 4, 8, 16})
        for (int s : {1, 2, 4, 8}) configs.push_back({algorithm, {{'b', b}, {'v', v}, {'s', s}}});
  return configs;
}

double time_in_valley(const Config& c) {
  const auto steps = [&](char axis, int best) { return std::abs(std::log2(c.get(axis, best)) - std::log2(best)); };
  return (c.algorithm == "good" ? 10 : 14) * (1 + 0.1 * (steps('b', 128) + steps('v', 4) + steps('s', 1)));
}

/// Runs a strategy to its end; returns the indices in the order evaluated.
std::vector<std::size_t> play(Strategy& strategy, const std::vector<Config>& configs) {
  std::vector<std::size_t> order;
  std::set<std::size_t> seen;
  for (auto batch = strategy.propose(); !batch.empty(); batch = strategy.propose())
    for (std::size_t i : batch) {
      if (!seen.insert(i).second) continue;
      order.push_back(i);
      strategy.report(i, time_in_valley(configs[i]));
    }
  return order;
}

TEST(Exhaustive, EveryConfigOnceAndAnyPrefixIsFair) {
  const auto configs = valley();
  const auto order = play(*make_strategy("exhaustive", configs, {}), configs);
  EXPECT_EQ(order.size(), configs.size());
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), configs.size());
  const auto good =
      std::count_if(order.begin(), order.begin() + 20, [&](std::size_t i) { return configs[i].algorithm == "good"; });
  EXPECT_EQ(good, 10);
}

TEST(Exhaustive, SameSeedSameOrder) {
  const auto configs = valley();
  EXPECT_EQ(fair_order(configs, 3), fair_order(configs, 3));
  EXPECT_NE(fair_order(configs, 3), fair_order(configs, 4));
}

TEST(Random, TakesAsManyAsAsked) {
  const auto configs = valley();
  StrategyOptions options;
  EXPECT_EQ(play(*make_strategy("random", configs, options), configs).size(), configs.size() / 6);
  options.evaluations = 7;
  EXPECT_EQ(play(*make_strategy("random", configs, options), configs).size(), 7u);
  options.evaluations = 100000;
  EXPECT_EQ(play(*make_strategy("random", configs, options), configs).size(), configs.size());
}

TEST(Local, FindsTheBottomOfAValleyWithAFewEvaluations) {
  const auto configs = valley();
  for (std::uint64_t seed : {1, 2, 3, 4, 5}) {
    StrategyOptions options;
    options.seed = seed;
    const auto order = play(*make_strategy("local", configs, options), configs);
    const auto best = *std::min_element(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return time_in_valley(configs[a]) < time_in_valley(configs[b]);
    });
    EXPECT_EQ(configs[best].name(), "good.b128.v4.s1") << "seed " << seed;
    EXPECT_LT(order.size(), configs.size() / 3) << "seed " << seed;
  }
}

TEST(Local, EndsWhenEverythingFails) {
  const auto configs = valley();
  const auto strategy = make_strategy("local", configs, {});
  int rounds = 0;
  for (auto batch = strategy->propose(); !batch.empty() && rounds < 100; batch = strategy->propose(), ++rounds)
    for (std::size_t i : batch) strategy->report(i, std::nullopt);
  EXPECT_LT(rounds, 100);
}

TEST(Racing, KeepsTheFasterFamiliesAndTriesAllOfTheLast) {
  const auto configs = valley();
  const auto order = play(*make_strategy("racing", configs, {}), configs);
  EXPECT_LT(order.size(), configs.size() / 2);
  double best = 1e9;
  for (std::size_t i : order) best = std::min(best, time_in_valley(configs[i]));
  EXPECT_LT(best, 12);  // of a good family: 10 at its bottom, 14 at least where the bad algorithm is
}

/// Plays a strategy that adapts: one evaluation, then it is asked again.
std::vector<std::size_t> play_adapting(Strategy& strategy, const std::vector<Config>& configs, std::size_t base) {
  std::vector<std::size_t> order{base};
  strategy.report(base, time_in_valley(configs[base]));
  for (auto batch = strategy.propose(); !batch.empty(); batch = strategy.propose()) {
    order.push_back(batch.front());
    strategy.report(batch.front(), time_in_valley(configs[batch.front()]));
  }
  return order;
}

TEST(Auto, WithoutHintsEndsWithinThirtyPercentAndIsCloseToTheBest) {
  const auto configs = valley();
  const auto strategy = make_strategy("auto", configs, {});
  const auto order = play_adapting(*strategy, configs, 0);
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), order.size()) << "something was tried twice";
  EXPECT_LE(order.size(), configs.size() * 3 / 10);
  double best = 1e9;
  for (std::size_t i : order) best = std::min(best, time_in_valley(configs[i]));
  EXPECT_LT(best, 13);
}

TEST(Auto, HintsOfAnAlikeWorkloadLeadToTheBestWithinFifteenPercent) {
  const auto configs = valley();
  const auto strategy = make_strategy("auto", configs, {});
  std::vector<Hint> hints;
  for (const Config& config : configs) hints.push_back({config, std::log(time_in_valley(config) / 10), 0.5});
  strategy->heed(hints);
  const auto order = play_adapting(*strategy, configs, 0);
  EXPECT_LE(order.size(), configs.size() * 15 / 100);
  double best = 1e9;
  for (std::size_t i : order) best = std::min(best, time_in_valley(configs[i]));
  EXPECT_LE(best, 10 * 1.11);  // at most one step off
}

TEST(Auto, LeavesOutWhatMayNotBeChosenAndWhatWasKnownBefore) {
  const auto configs = valley();
  StrategyOptions options;
  for (const Config& config : configs) options.eligible.push_back(config.algorithm == "good");
  const auto strategy = make_strategy("auto", configs, options);
  strategy->report(130, 11.0);
  const auto order = play_adapting(*strategy, configs, 125);
  for (std::size_t i = 1; i < order.size(); ++i) {
    EXPECT_EQ(configs[order[i]].algorithm, "good");
    EXPECT_NE(order[i], 130u);
  }
}

TEST(Auto, EndsWhenEverythingFails) {
  const auto configs = valley();
  const auto strategy = make_strategy("auto", configs, {});
  std::size_t evaluations = 0;
  for (auto batch = strategy->propose(); !batch.empty(); batch = strategy->propose(), ++evaluations)
    strategy->report(batch.front(), std::nullopt);
  EXPECT_LE(evaluations, configs.size() * 3 / 10);
}

TEST(Strategies, UnknownNameListsThem) {
  try {
    make_strategy("clever", {}, {});
    FAIL();
  } catch (const UsageError& error) {
    for (const auto& name : strategy_names()) EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace rowtune
