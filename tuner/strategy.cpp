#include "tuner/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "kernels/errors.hpp"

namespace rowtune {
namespace {

/// splitmix64: the standard library's distributions differ between libraries, and an order must not.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

void shuffle(std::vector<std::size_t>& items, std::uint64_t seed) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[next_random(seed) % i]);
}

/// Exhaustive, and random as its prefix.
class InOrder : public Strategy {
 public:
  explicit InOrder(std::vector<std::size_t> order) : order_(std::move(order)) {}
  std::vector<std::size_t> propose() override { return std::exchange(order_, {}); }
  void report(std::size_t, std::optional<double>) override {}

 private:
  std::vector<std::size_t> order_;
};

/// Hill climbing from several places: some of every algorithm first, then the neighbours (one axis, one step) of the
/// best few, until none of those has a neighbour left.
class Local : public Strategy {
 public:
  Local(const std::vector<Config>& configs, std::uint64_t seed) : configs_(configs) {
    std::map<std::string, std::size_t> taken;
    for (std::size_t i : fair_order(configs, seed))
      if (taken[configs[i].algorithm]++ < starts_per_algorithm) first_.push_back(i);
    for (std::size_t i = 0; i < configs.size(); ++i)
      for (const AxisValue& axis : configs[i].axes) values_[configs[i].algorithm][axis.letter].insert(axis.value);
  }

  std::vector<std::size_t> propose() override {
    if (!first_.empty()) return std::exchange(first_, {});
    std::vector<std::pair<double, std::size_t>> ranking;
    for (const auto& [i, time] : known_)
      if (time) ranking.emplace_back(*time, i);
    std::sort(ranking.begin(), ranking.end());
    for (std::size_t place = 0; place < std::min(climbers, ranking.size()); ++place) {
      std::vector<std::size_t> fresh;
      for (std::size_t i = 0; i < configs_.size(); ++i)
        if (!known_.contains(i) && !proposed_.contains(i) && neighbours(configs_[ranking[place].second], configs_[i]))
          fresh.push_back(i);
      proposed_.insert(fresh.begin(), fresh.end());
      if (!fresh.empty()) return fresh;
    }
    return {};
  }

  void report(std::size_t config, std::optional<double> time_us) override { known_[config] = time_us; }

 private:
  static constexpr std::size_t starts_per_algorithm = 4;
  static constexpr std::size_t climbers = 3;

  bool neighbours(const Config& a, const Config& b) const {
    if (a.algorithm != b.algorithm || a.axes.size() != b.axes.size()) return false;
    int steps = 0;
    for (std::size_t k = 0; k < a.axes.size(); ++k) {
      if (a.axes[k].value == b.axes[k].value) continue;
      const auto& values = values_.at(a.algorithm).at(a.axes[k].letter);
      const auto distance = std::distance(values.begin(), values.find(a.axes[k].value)) -
                            std::distance(values.begin(), values.find(b.axes[k].value));
      steps += static_cast<int>(std::abs(distance));
    }
    return steps == 1;
  }

  const std::vector<Config>& configs_;
  std::vector<std::size_t> first_;
  std::map<std::string, std::map<char, std::set<int>>> values_;  ///< that occur in the space
  std::map<std::size_t, std::optional<double>> known_;
  std::set<std::size_t> proposed_;
};

}  // namespace

std::vector<std::size_t> fair_order(const std::vector<Config>& configs, std::uint64_t seed) {
  std::vector<std::string> names;  // in declared order
  std::map<std::string, std::vector<std::size_t>> by_algorithm;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    auto& members = by_algorithm[configs[i].algorithm];
    if (members.empty()) names.push_back(configs[i].algorithm);
    members.push_back(i);
  }
  for (const auto& name : names) shuffle(by_algorithm[name], seed++);
  std::vector<std::size_t> order;
  for (std::size_t turn = 0; order.size() < configs.size(); ++turn)
    for (const auto& name : names)
      if (turn < by_algorithm[name].size()) order.push_back(by_algorithm[name][turn]);
  return order;
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names{"exhaustive", "random", "local"};
  return names;
}

std::unique_ptr<Strategy> make_strategy(std::string_view name, const std::vector<Config>& configs,
                                        const StrategyOptions& options) {
  if (name == "exhaustive") return std::make_unique<InOrder>(fair_order(configs, options.seed));
  if (name == "random") {
    std::vector<std::size_t> order(configs.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    shuffle(order, options.seed);
    const std::size_t some = std::max<std::size_t>(16, (configs.size() + 5) / 6);
    const std::size_t most = options.evaluations ? static_cast<std::size_t>(*options.evaluations) : some;
    if (order.size() > most) order.resize(most);
    return std::make_unique<InOrder>(std::move(order));
  }
  if (name == "local") return std::make_unique<Local>(configs, options.seed);
  throw UsageError(fmt::format("unknown strategy '{}'; choose from {}", name, fmt::join(strategy_names(), ", ")));
}

}  // namespace rowtune
