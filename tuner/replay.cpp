#include "tuner/replay.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>

#include "tuner/neighbours.hpp"
#include "tuner/sweep.hpp"

namespace rowtune {
namespace {

/// The evaluations at which regret is asked for.
std::vector<std::size_t> checkpoints(std::size_t most) {
  std::vector<std::size_t> points;
  for (std::size_t power = 1; power <= most; power *= 2)
    for (std::size_t at : {power, power + power / 2})
      if (at <= most && (points.empty() || at > points.back())) points.push_back(at);
  return points;
}

/// Regrets of one workload after each evaluation; the base comes first.
std::vector<double> play(const RecordedSpace& space, Sweep& sweep) {
  std::vector<double> regrets;
  double best = std::numeric_limits<double>::infinity();
  while (const auto next = sweep.next()) {
    const db::Measurement& m = space.results[*next];
    sweep.learn(m);
    if (m.time_us && space.planned.eligible[*next]) best = std::min(best, *m.time_us);
    regrets.push_back(best / space.best_us - 1);
  }
  return regrets;
}

ReplayPoint summarise(std::vector<double> regrets) {
  ReplayPoint point;
  std::sort(regrets.begin(), regrets.end());
  const std::size_t n = regrets.size();
  point.median_regret = n % 2 == 1 ? regrets[n / 2] : 0.5 * (regrets[n / 2 - 1] + regrets[n / 2]);
  point.p90_regret = regrets[std::min(n - 1, n * 9 / 10)];
  point.worst_regret = regrets.back();
  for (double regret : regrets) {
    point.mean_regret += regret / static_cast<double>(n);
    if (regret <= 0.01) point.within_1_percent += 1 / static_cast<double>(n);
  }
  return point;
}

}  // namespace

std::vector<RecordedSpace> recorded_spaces(const std::vector<db::BestRow>& leaderboard) {
  std::map<Workload, std::vector<const db::BestRow*>> by_workload;
  for (const db::BestRow& row : leaderboard) by_workload[row.workload()].push_back(&row);
  std::vector<RecordedSpace> spaces;
  for (auto& [workload, rows] : by_workload) {
    // By name: the order in which they were measured or ranked must not help a strategy.
    std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->config < b->config; });
    RecordedSpace space;
    space.planned.workload = workload;
    space.best_us = std::numeric_limits<double>::infinity();
    bool has_base = false;
    for (const db::BestRow* row : rows) {
      db::Measurement m;
      m.key.workload = workload;
      m.key.config = row->config;
      m.outcome = parse_outcome(row->status);
      m.time_us = row->time_us;
      m.time_lo_us = row->time_lo_us;
      if (row->is_base && row->time_us) {
        has_base = true;
        space.planned.base = space.results.size();
      }
      if (row->time_us && row->eligible) space.best_us = std::min(space.best_us, *row->time_us);
      space.planned.configs.push_back(split_config_name(row->config));
      space.planned.eligible.push_back(row->eligible);
      space.results.push_back(std::move(m));
    }
    if (has_base && space.results.size() >= 2) spaces.push_back(std::move(space));
  }
  return spaces;
}

std::vector<ReplayPoint> replay(const std::vector<RecordedSpace>& spaces, const ReplaySettings& settings) {
  if (spaces.empty()) throw std::invalid_argument("nothing to replay");
  std::size_t largest = 0;
  double configs = 0;
  for (const RecordedSpace& space : spaces) {
    largest = std::max(largest, space.results.size());
    configs += static_cast<double>(space.results.size());
  }
  const std::vector<std::size_t> points = checkpoints(largest);
  std::vector<std::vector<double>> regrets(points.size() + 1);
  std::vector<double> evaluated(points.size() + 1, 0);
  std::mt19937_64 random(settings.seed);
  std::vector<std::size_t> order(spaces.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = 0; round < settings.replays; ++round) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    Neighbours neighbours;
    StrategyOptions options;
    options.seed = random();
    for (std::size_t i : order) {
      Sweep sweep(spaces[i].planned, settings.strategy, options);
      if (settings.hints) sweep.heed(neighbours.hints(sweep.workload()));
      const std::vector<double> course = play(spaces[i], sweep);
      if (settings.hints && sweep.adapts()) neighbours.add(sweep.workload(), sweep.contenders());
      for (std::size_t p = 0; p <= points.size(); ++p) {
        const std::size_t at = p < points.size() ? std::min(points[p], course.size()) : course.size();
        regrets[p].push_back(course[at - 1]);
        evaluated[p] += static_cast<double>(at) / settings.replays;
      }
    }
  }
  std::vector<ReplayPoint> out;
  for (std::size_t p = 0; p <= points.size(); ++p) {
    ReplayPoint point = summarise(std::move(regrets[p]));
    point.evaluations = p < points.size() ? points[p] : 0;
    point.evaluated = evaluated[p] / static_cast<double>(spaces.size());
    point.share = evaluated[p] / configs;
    out.push_back(point);
    if (p < points.size() && evaluated[p] == evaluated.back()) p = points.size() - 1;  // nobody goes any further
  }
  return out;
}

}  // namespace rowtune
