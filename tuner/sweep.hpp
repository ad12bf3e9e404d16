#pragma once
// The state of one workload while it is tuned: what is known, what comes next, who leads. No device, no database.

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/records.hpp"
#include "tuner/final.hpp"
#include "tuner/plan.hpp"
#include "tuner/strategy.hpp"

namespace rowtune {

class Sweep {
 public:
  Sweep(const PlannedWorkload& planned, const std::string& strategy, const StrategyOptions& options);

  const PlannedWorkload& planned() const { return planned_; }
  const Workload& workload() const { return planned_.workload; }

  /// The config to measure next: the base, then what was suggested, then what the strategy proposes; never one that is
  /// known. Absent when the sweep is complete. Stays the same until `learn` has heard of it.
  std::optional<std::size_t> next();
  /// The configs that will come after, as far as they are foreseen (the next among them), at most `count`.
  std::vector<std::size_t> upcoming(std::size_t count);
  bool base_is_known() const { return known_.contains(planned_.base); }
  /// Winners of similar workloads, by name: tried first, right after the base.
  void suggest(const std::vector<std::string>& names);
  /// What similar workloads tell, for a strategy that adapts.
  void heed(const std::vector<Hint>& hints);
  bool adapts() const { return strategy_->adapts(); }

  /// A result, new or from the database. A config that is not of this space is ignored.
  void learn(const db::Measurement& m);

  /// Ran right and may be chosen.
  std::vector<Contender> contenders() const;
  std::optional<Contender> leader() const;
  std::vector<std::string> fastest(std::size_t count) const;
  std::size_t known() const { return known_.size(); }
  /// How many are foreseen at the moment.
  std::size_t remaining();

 private:
  struct Known {
    std::optional<double> time_us;  ///< absent when it failed or may not be chosen
    double low_us = 0;
  };
  void refill();

  const PlannedWorkload& planned_;
  std::unique_ptr<Strategy> strategy_;
  std::deque<std::size_t> queue_;
  std::map<std::string, std::size_t> index_;
  std::map<std::size_t, Known> known_;
  bool primed_ = false, exhausted_ = false;
  bool stale_ = true;  ///< an adapting strategy has something else to propose
};

}  // namespace rowtune
