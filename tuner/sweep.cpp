#include "tuner/sweep.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace rowtune {
namespace {

StrategyOptions with(StrategyOptions options, const PlannedWorkload& planned) {
  options.eligible = planned.eligible;
  if (!planned.swept) options.given = planned.recorded.size();
  return options;
}

}  // namespace

Sweep::Sweep(const PlannedWorkload& planned, const std::string& strategy, const StrategyOptions& options)
    : planned_(planned), strategy_(make_strategy(strategy, planned.configs, with(options, planned))) {
  for (std::size_t i = 0; i < planned.configs.size(); ++i) index_[planned.configs[i].name()] = i;
  queue_.push_back(planned.base);
}

void Sweep::refill() {
  if (strategy_->adapts()) {
    if (!std::exchange(stale_, false)) return;
    const auto proposed = strategy_->propose();
    queue_.assign(proposed.begin(), proposed.end());
    if (!base_is_known()) queue_.push_front(planned_.base);
    return;
  }
  if (!primed_) {  // behind the base, once what the database knows has been learned
    primed_ = true;
    const auto proposed = strategy_->propose();
    queue_.insert(queue_.end(), proposed.begin(), proposed.end());
  }
  while (true) {
    while (!queue_.empty() && known_.contains(queue_.front())) queue_.pop_front();
    if (!queue_.empty() || exhausted_) return;
    const auto proposed = strategy_->propose();
    exhausted_ = proposed.empty();
    queue_.assign(proposed.begin(), proposed.end());
  }
}

std::optional<std::size_t> Sweep::next() {
  refill();
  if (queue_.empty()) return std::nullopt;
  return queue_.front();
}

std::vector<std::size_t> Sweep::upcoming(std::size_t count) {
  refill();
  std::vector<std::size_t> out;
  std::set<std::size_t> seen;
  for (std::size_t i : queue_) {
    if (out.size() == count) break;
    if (!known_.contains(i) && seen.insert(i).second) out.push_back(i);
  }
  return out;
}

std::size_t Sweep::remaining() {
  if (!strategy_->adapts()) return upcoming(planned_.configs.size()).size();
  if (!next()) return 0;
  return std::max<std::size_t>(1, strategy_->expected() - std::min(strategy_->expected(), known_.size()));
}

void Sweep::heed(const std::vector<Hint>& hints) {
  strategy_->heed(hints);
  stale_ = true;
}

void Sweep::suggest(const std::vector<std::string>& names) {
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const auto found = index_.find(*name);
    if (found != index_.end()) queue_.push_front(found->second);
  }
  if (!base_is_known()) queue_.push_front(planned_.base);
}

void Sweep::learn(const db::Measurement& m) {
  const auto found = index_.find(m.key.config);
  if (found == index_.end()) return;
  const bool can_win = m.outcome == Outcome::ok && m.time_us && planned_.eligible[found->second];
  known_[found->second] = {can_win ? m.time_us : std::nullopt, m.time_lo_us.value_or(0)};
  strategy_->report(found->second, known_[found->second].time_us);
  stale_ = true;
}

std::vector<Contender> Sweep::contenders() const {
  std::vector<Contender> out;
  for (const auto& [i, known] : known_)
    if (known.time_us) out.push_back({planned_.configs[i], *known.time_us, known.low_us, i == planned_.base});
  std::sort(out.begin(), out.end(), [](const Contender& a, const Contender& b) { return a.time_us < b.time_us; });
  return out;
}

std::optional<Contender> Sweep::leader() const {
  const auto all = contenders();
  if (all.empty()) return std::nullopt;
  return all.front();
}

std::vector<std::string> Sweep::fastest(std::size_t count) const {
  std::vector<std::string> names;
  for (const Contender& contender : contenders())
    if (names.size() < count) names.push_back(contender.config.name());
  return names;
}

}  // namespace rowtune
