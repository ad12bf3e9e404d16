#pragma once
// Search strategies. A strategy sees only configs and times: it proposes what to evaluate next and is told how it went,
// by a tuner with a device or by a replay without one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/config.hpp"

namespace rowtune {

/// How a config did on a similar workload.
struct Hint {
  Config config;            ///< in the words of this space
  double log_slowdown = 0;  ///< ln(its time / the best time there)
  double weight = 0;        ///< 1: the same workload; towards 0: nothing in common
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Indices of configs to evaluate next, the most promising first; empty when the strategy is done. What it proposed
  /// may be left out (already known, out of time): only `report` tells. May name configs that were reported before.
  virtual std::vector<std::size_t> propose() = 0;
  /// The time of a config, absent when it failed or may not be chosen. Also called for what was known beforehand.
  virtual void report(std::size_t config, std::optional<double> time_us) = 0;
  /// What similar workloads tell; replaces what was told before.
  virtual void heed(const std::vector<Hint>&) {}
  /// True: every report may change what is proposed, so only the first of a proposal is certain. What `propose` gave is
  /// then forgotten, and may be asked for again.
  virtual bool adapts() const { return false; }
  /// How many configs it will evaluate in all, about.
  virtual std::size_t expected() const = 0;
};

struct StrategyOptions {
  std::uint64_t seed = 1;
  /// random and auto: how many configs at most. By default random takes a sixth of the space, at least 16; auto
  /// what is said at its class.
  std::optional<int> evaluations;
  std::vector<bool> eligible;  ///< of each config: false cannot be chosen, and auto leaves it out; empty: all may
  std::size_t given = 0;       ///< auto: how many of the first reports are of configs that no strategy asked for
};

/// Throws UsageError naming the strategies. `configs` must outlive the strategy.
std::unique_ptr<Strategy> make_strategy(std::string_view name, const std::vector<Config>& configs,
                                        const StrategyOptions& options);
const std::vector<std::string>& strategy_names();

/// Every config once, in an order that gives good early winners: the algorithms take turns, each in a random order of
/// its own, so that any prefix is a fair sample of all of them.
std::vector<std::size_t> fair_order(const std::vector<Config>& configs, std::uint64_t seed);

}  // namespace rowtune
