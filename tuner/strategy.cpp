#include "tuner/strategy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
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
  explicit InOrder(std::vector<std::size_t> order) : count_(order.size()), order_(std::move(order)) {}
  std::vector<std::size_t> propose() override { return std::exchange(order_, {}); }
  void report(std::size_t, std::optional<double>) override {}
  std::size_t expected() const override { return count_; }

 private:
  std::size_t count_;
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
  std::size_t expected() const override { return std::max(known_.size(), (configs_.size() + 2) / 3); }

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

/// Successive halving (Jamieson & Talwalkar 2016) over families, which are the algorithms by block size: in each round
/// every family still in the race evaluates one more of its configs, then the slower half leaves, by the best of each.
/// The last family is evaluated to its end.
class Racing : public Strategy {
 public:
  Racing(const std::vector<Config>& configs, std::uint64_t seed) : total_(configs.size()) {
    std::map<std::string, std::size_t> index;
    for (std::size_t i : fair_order(configs, seed)) {
      const auto [at, fresh] =
          index.try_emplace(fmt::format("{} {}", configs[i].algorithm, configs[i].block_size()), families_.size());
      if (fresh) families_.emplace_back();
      families_[at->second].members.push_back(i);
    }
    times_.resize(total_);
  }

  std::vector<std::size_t> propose() override {
    if (begun_) drop_slower_half();
    begun_ = true;
    std::vector<std::size_t> round;
    for (Family& family : families_) {
      const std::size_t more = families_.size() == 1 ? family.members.size() : family.tried + 1;
      for (; family.tried < std::min(more, family.members.size()); ++family.tried)
        round.push_back(family.members[family.tried]);
    }
    return round;
  }
  void report(std::size_t config, std::optional<double> time_us) override { times_[config] = time_us; }
  std::size_t expected() const override { return (total_ + 2) / 3; }

 private:
  struct Family {
    std::vector<std::size_t> members;
    std::size_t tried = 0;
  };
  double best_of(const Family& family) const {
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t i : family.members) best = std::min(best, times_[i].value_or(best));
    return best;
  }
  void drop_slower_half() {
    std::stable_sort(families_.begin(), families_.end(),
                     [this](const Family& a, const Family& b) { return best_of(a) < best_of(b); });
    families_.resize((families_.size() + 1) / 2);
  }

  std::size_t total_;
  std::vector<Family> families_;
  std::vector<std::optional<double>> times_;
  bool begun_ = false;
};

/// Predicts the slowdown of every config as the mean of all that is known, weighted by likeness (Nadaraya-Watson): what
/// was measured here, and the hints of similar workloads. Two configs are as alike as exp(-d), d the sum of the
/// doublings between their axes, and far apart when their algorithms differ. It tries what promises most, with a bonus
/// for what little is known about, and ends when a few in a row were no better or after 15 % of the space, 30 % without
/// hints. The constants were chosen by replay (README.md).
class Auto : public Strategy {
 public:
  Auto(const std::vector<Config>& configs, const StrategyOptions& options)
      : eligible_(options.eligible),
        most_(options.evaluations),
        given_(options.given),
        order_(fair_order(configs, options.seed)) {
    for (const Config& config : configs) points_.emplace_back(config);
    known_.resize(configs.size(), false);
    hinted_.resize(configs.size());
    own_.resize(configs.size());
  }

  std::vector<std::size_t> propose() override {
    if (evaluated_ >= expected() || since_better_ >= patience()) return {};
    std::vector<std::pair<double, std::size_t>> ranking;
    for (std::size_t i : order_)
      if (!known_[i] && (eligible_.empty() || eligible_[i])) ranking.emplace_back(promise(i), i);
    std::stable_sort(ranking.begin(), ranking.end(), [](auto& a, auto& b) { return a.first < b.first; });
    if (ranking.size() > foresight) ranking.resize(foresight);
    std::vector<std::size_t> proposed;
    for (const auto& [slowdown, i] : ranking) proposed.push_back(i);
    return proposed;
  }

  void report(std::size_t config, std::optional<double> time_us) override {
    if (known_[config]) return;
    known_[config] = true;
    ++evaluated_;
    const bool better = time_us && (!best_us_ || *time_us < (1 - worth_having) * *best_us_);
    since_better_ = better || evaluated_ <= given_ ? 0 : since_better_ + 1;
    if (time_us && (!best_us_ || *time_us < *best_us_)) best_us_ = time_us;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const double weight = own_weight * likeness(points_[i], points_[config]);
      if (time_us)
        own_[i].add(weight, std::log(*time_us));
      else
        hinted_[i].add(weight, slowdown_of_failures);
    }
  }

  void heed(const std::vector<Hint>& hints) override {
    has_hints_ = !hints.empty();
    std::fill(hinted_.begin(), hinted_.end(), Sum());
    for (const Hint& hint : hints) {
      const Point point(hint.config);
      for (std::size_t i = 0; i < points_.size(); ++i)
        hinted_[i].add(hint.weight * likeness(points_[i], point), hint.log_slowdown);
    }
  }

  bool adapts() const override { return true; }

  std::size_t expected() const override {
    const auto share = [this](double of) { return static_cast<std::size_t>(of * static_cast<double>(points_.size())); };
    if (most_) return given_ + static_cast<std::size_t>(*most_);
    return given_ + std::max({share(has_hints_ ? 0.15 : 0.3), std::min<std::size_t>(least_evaluations, share(0.2)),
                              std::size_t{2}});
  }

 private:
  static constexpr std::size_t least_evaluations = 8;  ///< where a fifth of the space is that many
  static constexpr std::size_t foresight = 64;         ///< proposals, for the compiler to work ahead
  static constexpr double worth_having = 0.002;        ///< share of the time below which better is not better
  static constexpr double own_weight = 3;              ///< of a measurement of this workload, in hints
  static constexpr double curiosity = 0.3;             ///< bonus of what nothing is known about, in logarithms
  static constexpr double length = 1.0;                ///< doublings over which likeness falls to 1/e
  static constexpr double other_algorithm = 8;         ///< doublings that another algorithm is away
  static constexpr double slowdown_of_failures = 1;
  static constexpr double prior_weight = 0.02, prior_slowdown = 0.1;  ///< where nothing is near

  struct Point {
    explicit Point(const Config& config) : algorithm(config.algorithm) {
      for (const AxisValue& axis : config.axes) axes.emplace_back(axis.letter, std::log2(axis.value + 1.0));
    }
    std::string algorithm;
    std::vector<std::pair<char, double>> axes;
  };
  struct Sum {
    double weight = 0, value = 0;
    void add(double w, double v) { weight += w, value += w * v; }
  };

  std::size_t patience() const { return has_hints_ ? 16 : 18; }

  static double likeness(const Point& a, const Point& b) {
    double distance = a.algorithm == b.algorithm ? 0 : other_algorithm;
    for (const auto& [letter, value] : a.axes)
      for (const auto& [other_letter, other_value] : b.axes)
        if (letter == other_letter) distance += std::abs(value - other_value);
    return std::exp(-distance / length);
  }

  double promise(std::size_t i) const {
    const double own = best_us_ ? own_[i].value - std::log(*best_us_) * own_[i].weight : 0;
    const double weight = hinted_[i].weight + own_[i].weight;
    const double slowdown = (hinted_[i].value + own + prior_weight * prior_slowdown) / (weight + prior_weight);
    return slowdown - curiosity / std::sqrt(1 + 10 * weight);
  }

  std::vector<bool> eligible_;
  std::optional<int> most_;
  std::size_t given_;               ///< evaluations that do not count
  std::vector<std::size_t> order_;  ///< ties of promise are tried in this order
  std::vector<Point> points_;
  std::vector<bool> known_;
  std::vector<Sum> hinted_;  ///< of log slowdowns
  std::vector<Sum> own_;     ///< of log times
  std::optional<double> best_us_;
  std::size_t evaluated_ = 0, since_better_ = 0;
  bool has_hints_ = false;
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
  static const std::vector<std::string> names{"exhaustive", "random", "racing", "local", "auto"};
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
  if (name == "racing") return std::make_unique<Racing>(configs, options.seed);
  if (name == "auto") return std::make_unique<Auto>(configs, options);
  if (name == "local") return std::make_unique<Local>(configs, options.seed);
  throw UsageError(fmt::format("unknown strategy '{}'; choose from {}", name, fmt::join(strategy_names(), ", ")));
}

}  // namespace rowtune
