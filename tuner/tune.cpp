#include "tuner/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tuner/identity.hpp"

namespace rowtune {
namespace {

constexpr std::size_t compile_batch = 32;
constexpr double explore_share = 0.85;      ///< of a workload's share of the budget; the rest is for its final
constexpr double configs_per_share = 16;    ///< that a share should reach, by shorter sampling
constexpr double crowded_share = 0.6;       ///< share of a budget that one config of each workload may take
constexpr double least_sampling = 0.02;     ///< seconds: below, a time is worth nothing
constexpr std::size_t winners_to_pass = 3;  ///< of a similar workload, tried first
constexpr double forever = std::numeric_limits<double>::infinity();

bool alike(const Workload& a, const Workload& b) {
  return a.op == b.op && a.dtype == b.dtype && a.regime == b.regime && a.options == b.options;
}

/// Columns decide the algorithm, rows the parallelism: a factor in columns weighs twice one in rows.
double distance(const Shape& a, const Shape& b) {
  const auto ratio = [](std::int64_t x, std::int64_t y) {
    return std::abs(std::log(static_cast<double>(std::max<std::int64_t>(x, 1)) /
                             static_cast<double>(std::max<std::int64_t>(y, 1))));
  };
  return ratio(a.rows, b.rows) + 2 * ratio(a.cols, b.cols);
}

}  // namespace

struct Tuner::Item {
  Sweep sweep;
  db::MeasurementKey key;  ///< config empty
  std::map<std::size_t, CompileAhead::Ticket> tickets;
  std::size_t remaining = 0;
  bool complete = false;   ///< nothing more to measure
  bool abandoned = false;  ///< its buffers do not fit
  bool suggested = false;
};

Tuner::Tuner(Device& device, Measurer& measurer, db::Database& database, TuneSettings settings, TuneObserver& observer,
             const std::atomic<bool>& stop, Clock now)
    : device_(device),
      measurer_(measurer),
      database_(database),
      settings_(std::move(settings)),
      observer_(observer),
      stop_(stop),
      now_(std::move(now)) {}

Tuner::~Tuner() = default;

TuneReport Tuner::run(const Plan& plan) {
  start(plan);
  if (!settings_.budget_seconds) {
    for (Item& item : items_) {
      explore(item, forever);
      finish(item, settings_.final.max_seconds);
    }
  } else {
    const double budget = *settings_.budget_seconds;
    measure_bases_first(budget);
    // Turns rather than one turn each: what one leaves over is shared by those that need more.
    for (auto pass = unfinished(); !pass.empty() && !ended(budget); pass = unfinished())
      for (std::size_t i = 0; i < pass.size() && !ended(budget); ++i) {
        const double begin = elapsed();
        const double share = (budget - begin) / static_cast<double>(pass.size() - i);
        explore(*pass[i], begin + explore_share * share);
        finish(*pass[i], std::min(settings_.final.max_seconds, begin + share - elapsed()));
      }
  }
  measurer_.release();
  compiler_.reset();
  for (Item& item : items_) report_.left += item.abandoned ? 0 : item.remaining;
  report_.interrupted = stop_;
  report_.out_of_budget = !stop_ && report_.left > 0;
  report_.seconds = elapsed();
  return report_;
}

void Tuner::start(const Plan& plan) {
  started_ = now_();
  report_ = {};
  items_.clear();
  crowded_ = false;
  compiler_.emplace(device_);
  for (const PlannedWorkload& planned : plan.workloads) {
    Item item{Sweep(planned, settings_.strategy, settings_.strategy_options), key_of(device_, planned.workload), {}};
    if (!planned.recorded.empty())
      for (const db::Measurement& m : database_.measurements(item.key)) item.sweep.learn(m);
    item.remaining = item.sweep.remaining();
    total_ += item.remaining;
    items_.push_back(std::move(item));
  }
}

/// Every turn measures the base before anything else. Where the turns of some would use up the time of others, because
/// buffers are large or the machine is busy, all get their base before any gets more, and from then on copies come
/// last.
void Tuner::measure_bases_first(double budget) {
  if (items_.empty() || ended(budget)) return;
  explore(items_.front(), elapsed());
  crowded_ = elapsed() * static_cast<double>(items_.size()) > crowded_share * budget;
  if (!crowded_) return;
  for (Item* item : unfinished())
    if (!item->sweep.base_is_known() && !ended(budget)) explore(*item, elapsed());
}

/// Measures until the deadline. The first config opens the buffers and is measured in any case: every turn gets
/// somewhere.
void Tuner::explore(Item& item, double deadline) {
  suggest(item);
  SamplingLimits limits = settings_.limits;
  bool measured_one = false;
  while (!item.abandoned && !stop_ && (!measured_one || elapsed() < deadline)) {
    const auto config = item.sweep.next();
    if (!config) {
      item.complete = true;
      item.remaining = 0;
      return;
    }
    if (!compiled(item, *config)) return;
    if (deadline != forever)  // what is left of the share, after the buffers were opened, reaches many configs
      limits.max_seconds = std::clamp((deadline - elapsed()) / configs_per_share, least_sampling, limits.max_seconds);
    measure_one(item, *config, limits);
    measured_one = true;
  }
}

void Tuner::measure_one(Item& item, std::size_t config, const SamplingLimits& limits) {
  const PlannedWorkload& planned = item.sweep.planned();
  MeasureRequest request;
  request.workload = planned.workload;
  request.config = planned.configs[config].name();
  request.eligible = planned.eligible[config];
  request.is_base = config == planned.base;
  request.limits = limits;
  const auto leader = item.sweep.leader();
  if (leader && !request.is_base) request.time_to_beat_us = leader->time_us;

  const db::Measurement m = measurer_.measure(request);
  database_.record(m);
  item.sweep.learn(m);
  ++report_.measured;
  if (m.outcome != Outcome::ok) ++report_.failed;
  item.remaining = item.sweep.remaining();
  total_ = report_.measured;
  for (const Item& each : items_) total_ += each.remaining;
  observer_.measured(status(item), m);

  if (m.outcome == Outcome::out_of_memory && m.launches_per_sample == 0) {
    item.abandoned = true;
    observer_.warning(fmt::format("{}: left out, its buffers do not fit {}: {}", to_string(planned.workload),
                                  device_.info().id, m.message));
  }
}

/// Hands winners of the most similar workload of this run on.
void Tuner::suggest(Item& item) {
  if (std::exchange(item.suggested, true)) return;
  const Item* nearest = nullptr;
  for (const Item& other : items_) {
    if (&other == &item || !other.complete || !alike(other.sweep.workload(), item.sweep.workload())) continue;
    const Shape& shape = item.sweep.workload().shape;
    if (!nearest || distance(other.sweep.workload().shape, shape) < distance(nearest->sweep.workload().shape, shape))
      nearest = &other;
  }
  if (nearest) item.sweep.suggest(nearest->sweep.fastest(winners_to_pass));
}

/// Sees to it that the config is compiled and that the compiler has work for the time after. False: stopped.
bool Tuner::compiled(Item& item, std::size_t config) {
  const auto queue = [this](Item& of, const std::vector<std::size_t>& configs) {
    std::vector<Job> jobs;
    for (std::size_t i : configs)
      if (!of.tickets.contains(i)) jobs.push_back({of.sweep.workload(), of.sweep.planned().configs[i]});
    if (jobs.empty()) return false;
    const auto ticket = compiler_->add(std::move(jobs));
    for (std::size_t i : configs) of.tickets.try_emplace(i, ticket);
    return true;
  };
  if (!item.tickets.contains(config)) queue(item, item.sweep.upcoming(compile_batch));
  // Half a batch before it is needed; at the end of a workload, for the one that follows.
  const auto soon = item.sweep.upcoming(compile_batch / 2 + 1);
  if (!item.tickets.contains(soon.back())) {
    queue(item, item.sweep.upcoming(compile_batch + compile_batch / 2));
  } else if (soon.size() <= compile_batch / 2) {
    for (Item* next = &item + 1; next < items_.data() + items_.size(); ++next)
      if (!next->complete && !next->abandoned) {
        queue(*next, next->sweep.upcoming(compile_batch));
        break;
      }
  }
  return compiler_->wait(item.tickets.at(config), stop_,
                         [this](std::size_t done, std::size_t total) { observer_.compiling(done, total); });
}

/// The final of a workload, unless the database holds a decision that is still good.
void Tuner::finish(Item& item, double seconds) {
  if (!settings_.finals || stop_ || item.abandoned || database_.decision(item.key)) return;
  const auto finalists = enter_final(item.sweep.contenders(), settings_.final);
  if (finalists.size() < 2) return;
  FinalSettings settings = settings_.final;
  settings.max_seconds = seconds;
  observer_.final_begins(status(item), finalists.size());
  try {
    const FinalResult result = hold_final(measurer_, item.sweep.workload(), finalists, settings, stop_, now_);
    if (!result.worth_keeping) return;
    record_final(item, result);
    ++report_.finals;
  } catch (const ConfigFailure& failure) {
    observer_.warning(fmt::format("{}: no final was held, a config that was right before failed: {}",
                                  to_string(item.sweep.workload()), failure.what()));
  }
}

/// The finalists' times become those of the final: all of them then stem from the same moments and placements.
void Tuner::record_final(Item& item, const FinalResult& result) {
  for (db::Measurement& m : database_.measurements(item.key)) {
    const auto finalist = std::find_if(result.finalists.begin(), result.finalists.end(),
                                       [&](const Finalist& f) { return f.contender.config.name() == m.key.config; });
    if (finalist == result.finalists.end()) continue;
    const Estimate& estimate = finalist->estimate;
    m.time_us = estimate.median;
    m.time_lo_us = estimate.low;
    m.time_hi_us = estimate.high;
    m.sample_count = estimate.count;
    m.samples_us = finalist->samples_us;
    m.settled = 0.5 * (estimate.high - estimate.low) <= settings_.limits.relative_half_width * estimate.median;
    m.measured_at.clear();
    database_.record(m, true);
    item.sweep.learn(m);
  }
  db::Decision decision;
  decision.key = item.key;
  decision.key.config = result.winner;
  decision.ties = result.ties;
  decision.confidence = settings_.final.confidence;
  decision.margin = settings_.final.margin;
  decision.method = result.method;
  database_.record_decision(decision);
}

bool Tuner::ended(double deadline) const { return stop_ || elapsed() >= deadline; }

std::vector<Tuner::Item*> Tuner::unfinished() {
  std::vector<Item*> out;
  for (Item& item : items_)
    if (!item.complete && !item.abandoned) out.push_back(&item);
  if (crowded_)
    std::stable_partition(out.begin(), out.end(),
                          [](const Item* item) { return item->sweep.workload().op != Operation::copy; });
  return out;
}

TuneStatus Tuner::status(const Item& item) const {
  TuneStatus status;
  status.done = report_.measured;
  status.total = total_;
  status.seconds = elapsed();
  const double each = status.done == 0 ? 0 : status.seconds / static_cast<double>(status.done);
  status.seconds_left = each * static_cast<double>(total_ - std::min(total_, status.done));
  if (settings_.budget_seconds)
    status.seconds_left = std::min(status.seconds_left, std::max(0.0, *settings_.budget_seconds - status.seconds));
  status.workload = &item.sweep.workload();
  status.leader = item.sweep.leader();
  return status;
}

}  // namespace rowtune
