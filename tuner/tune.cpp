#include "tuner/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <thread>
#include <utility>

#include "tuner/identity.hpp"

namespace rowtune {
namespace {

constexpr std::size_t configs_ahead = 32;   ///< that are compiled before they are needed, of one workload
constexpr std::size_t visit_configs = 6;    ///< that a strategy which adapts measures of a workload in a round
constexpr std::size_t visits_ahead = 32;    ///< whose configs are compiled before they are needed
constexpr double rounds_share = 0.8;        ///< of the budget, for rounds; finals of what is not complete come last
constexpr double explore_share = 0.85;      ///< of a workload's share of the budget; the rest is for its final
constexpr double configs_per_share = 16;    ///< that a share should reach, by shorter sampling
constexpr double crowded_share = 0.6;       ///< share of a budget that one config of each workload may take
constexpr double least_sampling = 0.02;     ///< seconds: below, a time is worth nothing
constexpr std::size_t winners_to_pass = 3;  ///< of a similar workload, tried first
constexpr double forever = std::numeric_limits<double>::infinity();

}  // namespace

struct Tuner::Item {
  std::size_t index;  ///< in the plan and the queue
  Sweep sweep;
  db::MeasurementKey key;  ///< config empty
  std::map<std::size_t, CompileAhead::Ticket> tickets;
  bool complete = false;   ///< nothing more to measure
  bool abandoned = false;  ///< its buffers do not fit
  bool suggested = false;
};

Tuner::Tuner(Device& device, Measurer& measurer, db::Database& database, TuneSettings settings, TuneObserver& observer,
             const std::atomic<bool>& stop, Clock now, std::shared_ptr<WorkQueue> queue)
    : device_(device),
      measurer_(measurer),
      database_(database),
      settings_(std::move(settings)),
      observer_(observer),
      stop_(stop),
      now_(std::move(now)),
      given_queue_(std::move(queue)) {}

Tuner::~Tuner() = default;

TuneReport Tuner::run(const Plan& plan) {
  start(plan);
  if (!items_.empty() && items_.front().sweep.adapts()) {
    run_in_rounds(settings_.budget_seconds.value_or(forever));
  } else if (settings_.budget_seconds) {
    measure_bases_first(*settings_.budget_seconds);
    run_in_turns(*settings_.budget_seconds);
  } else {
    for (Item& item : items_) {
      if (stop_) break;
      if (!take(item)) continue;
      explore(item, forever);
      finish(item, settings_.final.max_seconds);
      give_back(item);
    }
  }
  measurer_.release();
  compiler_.reset();
  report_.left = queue_->remaining();
  report_.interrupted = stop_;
  report_.out_of_budget = !stop_ && report_.left > 0;
  report_.seconds = elapsed();
  report_.busy_seconds = measurer_.busy_seconds();
  return report_;
}

/// A strategy that adapts knows only a few configs in advance. Compiled one workload after the other they would leave
/// most cores idle and the device waiting: so all workloads advance together, a few configs a visit, and those of the
/// next visits, also of the next round, are compiled while these are measured.
void Tuner::run_in_rounds(double budget) {
  const double exploring = budget == forever ? forever : rounds_share * budget;
  while (!ended(exploring)) {
    std::vector<Item*> open;
    for (Item& item : items_)
      if (!item.complete && !item.abandoned && queue_->is_free(item.index)) open.push_back(&item);
    if (open.empty()) {
      if (queue_->all_finished()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others have what is left
      continue;
    }
    const std::size_t ahead = std::min(visits_ahead, open.size() - 1);
    const std::size_t each = std::max(visit_configs, configs_ahead / open.size());
    for (std::size_t i = 0; i < ahead; ++i) compile_for_visit(*open[i], each);
    for (std::size_t i = 0; i < open.size() && !ended(exploring); ++i) {
      if (Item& later = *open[(i + ahead) % open.size()]; !later.complete && !later.abandoned)
        compile_for_visit(later, each);
      Item& item = *open[i];
      if (!take(item)) continue;
      visit(item);
      if (item.complete)
        finish(item, share_of_one(budget));
      else  // similar workloads of this round and the next need not wait for its end
        queue_->learn(item.sweep.workload(), item.sweep.contenders());
      give_back(item);
    }
  }
  // What the budget cut short gets a final among what is known.
  for (Item& item : items_) {
    if (ended(budget)) return;
    if (!take(item)) continue;
    finish(item, share_of_one(budget));
    give_back(item);
  }
}

/// Seconds for the final of one workload.
double Tuner::share_of_one(double budget) const {
  if (budget == forever) return settings_.final.max_seconds;
  const auto unfinished = static_cast<double>(std::max<std::size_t>(1, queue_->unfinished()));
  return std::min(settings_.final.max_seconds, settings_.workers * (budget - elapsed()) / unfinished);
}

void Tuner::compile_for_visit(Item& item, std::size_t configs) {
  consult_neighbours(item);
  for (std::size_t config : item.sweep.upcoming(configs)) compile(item, config);
}

/// Measures what the strategy wants most of what was asked to be compiled some visits ago, be it no longer what it
/// wants most of all: hints have come since, and a compilation costs more than a measurement. What it wants besides
/// comes in the next round. Opening the buffers of a workload takes as long as some configs, and so does a compilation:
/// neither is waited for while others have something to measure.
void Tuner::visit(Item& item) {
  consult_neighbours(item);
  std::vector<std::size_t> wanted = item.sweep.upcoming(item.sweep.planned().configs.size());  // all it has proposed
  const auto new_ones = std::stable_partition(wanted.begin(), wanted.end(),
                                              [&](std::size_t config) { return item.tickets.contains(config); });
  const auto asked = static_cast<std::size_t>(new_ones - wanted.begin());
  for (std::size_t i = asked; i < std::min(wanted.size(), asked + visit_configs); ++i) compile(item, wanted[i]);
  for (std::size_t i = 0; i < std::min(visit_configs, std::max<std::size_t>(1, asked)) && i < wanted.size(); ++i) {
    if (item.abandoned || stop_) return;
    if (!item.sweep.next()) break;  // the strategy has ended meanwhile
    if (!wait_for(item, wanted[i])) return;
    measure_one(item, wanted[i], settings_.limits);
  }
  if (!item.abandoned && !item.sweep.next()) complete(item);
}

void Tuner::complete(Item& item) {
  item.complete = true;
  queue_->set_remaining(item.index, 0);
  queue_->learn(item.sweep.workload(), item.sweep.contenders());
}

/// Turns rather than one turn each: what one leaves over is shared by those that need more.
void Tuner::run_in_turns(double budget) {
  const std::vector<Item*> order = in_order();
  while (!ended(budget) && !queue_->all_finished()) {
    std::size_t to_come = queue_->unfinished();
    bool took_one = false;
    for (Item* item : order) {
      if (ended(budget)) return;
      if (!take(*item)) continue;
      took_one = true;
      const double begin = elapsed();
      const double share =
          settings_.workers * (budget - begin) / static_cast<double>(std::max<std::size_t>(1, to_come--));
      explore(*item, std::min(budget, begin + explore_share * share));
      finish(*item, std::min(settings_.final.max_seconds, std::min(budget, begin + share) - elapsed()));
      give_back(*item);
    }
    if (!took_one) std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others have what is left
  }
}

bool Tuner::take(Item& item) {
  if (item.abandoned) return false;
  const WorkQueue::Taken taken = queue_->take(item.index, this);
  if (taken == WorkQueue::Taken::changed_by_another)
    for (const db::Measurement& m : recorded(item)) item.sweep.learn(m);
  return taken != WorkQueue::Taken::no;
}

void Tuner::give_back(Item& item) {
  const bool finished = item.complete || item.abandoned;
  if (finished) ++report_.workloads;
  queue_->give_back(item.index, finished);
}

void Tuner::start(const Plan& plan) {
  started_ = now_();
  report_ = {};
  items_.clear();
  crowded_ = false;
  compiler_.emplace(device_);
  queue_ = given_queue_ ? given_queue_ : std::make_shared<WorkQueue>(plan.workloads.size());
  remember_neighbours(plan);
  for (const PlannedWorkload& planned : plan.workloads) {
    Item item{items_.size(),
              Sweep(planned, settings_.strategy, settings_.strategy_options),
              key_of(device_, planned.workload),
              {}};
    if (!planned.recorded.empty())
      for (const db::Measurement& m : recorded(item)) item.sweep.learn(m);
    queue_->announce(item.index, item.sweep.remaining());
    items_.push_back(std::move(item));
  }
}

/// What the database knows of the operations of this plan, on this device.
void Tuner::remember_neighbours(const Plan& plan) {
  std::set<Operation> ops;
  for (const PlannedWorkload& planned : plan.workloads) ops.insert(planned.workload.op);
  for (Operation op : ops) {
    db::BestQuery query;
    query.device_model = device_.info().model;
    query.device_limits = device_.info().limits;
    query.op = op;
    std::map<Workload, std::vector<Contender>> known;
    const auto unswept = database_.unswept(query);  // too few configs to say what is good there
    for (const db::BestRow& row : database_.leaderboard(query))
      if (row.rank > 0 && row.time_us && !unswept.contains({*query.device_model, *query.device_limits, row.workload()}))
        known[row.workload()].push_back({split_config_name(row.config), *row.time_us, 0, row.is_base});
    for (const auto& [workload, contenders] : known) queue_->learn(workload, contenders);
  }
}

/// Every turn measures the base before anything else. Where the turns of some would use up the time of others, because
/// buffers are large or the machine is busy, all get their base before any gets more.
void Tuner::measure_bases_first(double budget) {
  if (items_.empty() || ended(budget)) return;
  const auto measure_base = [this](Item& item) {
    if (item.sweep.base_is_known() || !take(item)) return;
    explore(item, elapsed());
    give_back(item);
  };
  measure_base(items_.front());
  crowded_ = elapsed() * static_cast<double>(items_.size()) > crowded_share * settings_.workers * budget;
  if (!crowded_) return;
  for (Item* item : in_order())
    if (!ended(budget)) measure_base(*item);
}

/// As planned; where the budget is crowded copies come last.
std::vector<Tuner::Item*> Tuner::in_order() {
  std::vector<Item*> order;
  for (Item& item : items_) order.push_back(&item);
  if (crowded_)
    std::stable_partition(order.begin(), order.end(),
                          [](const Item* item) { return item->sweep.workload().op != Operation::copy; });
  return order;
}

/// Measures until the deadline. The first config opens the buffers and is measured in any case: every turn gets
/// somewhere.
void Tuner::explore(Item& item, double deadline) {
  consult_neighbours(item);
  SamplingLimits limits = settings_.limits;
  bool measured_one = false;
  while (!item.abandoned && !stop_ && (!measured_one || elapsed() < deadline)) {
    const auto config = item.sweep.next();
    if (!config) {
      complete(item);
      return;
    }
    compile_ahead_of(item);
    if (!wait_for(item, *config)) return;
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
  database_.record(m, settings_.same_unit);
  item.sweep.learn(m);
  ++report_.measured;
  if (m.outcome != Outcome::ok) ++report_.failed;
  queue_->count_measured();
  queue_->set_remaining(item.index, item.sweep.remaining());
  observer_.measured(status(item), m);

  if (m.outcome == Outcome::out_of_memory && m.launches_per_sample == 0) {
    item.abandoned = true;
    queue_->set_remaining(item.index, 0);
    observer_.warning(fmt::format("{}: left out, its buffers do not fit {}: {}", to_string(planned.workload),
                                  device_.info().id, m.message));
  }
}

/// Hands on what similar workloads of this run and of the database told.
void Tuner::consult_neighbours(Item& item) {
  if (item.sweep.adapts())
    item.sweep.heed(queue_->hints(item.sweep.workload()));
  else if (!std::exchange(item.suggested, true))
    item.sweep.suggest(queue_->winners(item.sweep.workload(), winners_to_pass));
}

/// At the end of a workload for the one that follows.
void Tuner::compile_ahead_of(Item& item) {
  std::size_t ahead = configs_ahead;
  for (Item* next = &item; ahead > 0 && next < items_.data() + items_.size(); ++next) {
    if (next != &item && (next->complete || next->abandoned || !queue_->is_free(next->index))) continue;
    const auto upcoming = next->sweep.upcoming(ahead);
    for (std::size_t config : upcoming) compile(*next, config);
    ahead -= std::min(ahead, upcoming.size());
  }
}

void Tuner::compile(Item& item, std::size_t config) {
  if (!item.tickets.contains(config))
    item.tickets[config] = compiler_->add(item.sweep.workload(), item.sweep.planned().configs[config]);
}

/// False: stopped.
bool Tuner::wait_for(Item& item, std::size_t config) {
  compile(item, config);
  return compiler_->wait(item.tickets.at(config), stop_,
                         [this](std::size_t done, std::size_t total) { observer_.compiling(done, total); });
}

/// The final of a workload, unless the database holds a decision that is still good; then the energy of the finalists.
void Tuner::finish(Item& item, double seconds) {
  if (stop_ || item.abandoned) return;
  if (settings_.finals && !database_.decision(item.key)) hold_and_record_final(item, seconds);
  if (settings_.energy && !no_energy_ && !stop_ && item.complete) measure_energy(item);
}

void Tuner::measure_energy(Item& item) {
  db::BestQuery query;
  query.device_model = device_.info().model;
  query.device_limits = device_.info().limits;
  query.op = item.sweep.workload().op, query.dtype = item.sweep.workload().dtype;
  query.shape = item.sweep.workload().shape, query.regime = item.sweep.workload().regime;
  query.options = item.sweep.workload().options;
  std::set<std::string> known;
  for (const db::EnergyRow& row : database_.energy(query)) known.insert(row.config);
  EnergyRequest request;
  request.workload = item.sweep.workload();
  for (const Contender& contender : enter_final(item.sweep.contenders(), settings_.final))
    if (!known.contains(contender.config.name())) request.configs.push_back(contender.config.name());
  if (request.configs.empty()) return;
  try {
    const auto joules = measurer_.energy(request);
    bool any = false;
    for (std::size_t i = 0; i < joules.size(); ++i) {
      if (!joules[i]) continue;
      any = true;
      db::MeasurementKey key = item.key;
      key.config = request.configs[i];
      database_.record_energy(key, *joules[i]);
    }
    if (any) return;
    no_energy_ = true;
    observer_.warning(
        fmt::format("{} tells no energy (NVML's counter is not there): only times are measured", device_.info().id));
  } catch (const ConfigFailure& failure) {
    observer_.warning(fmt::format("{}: no energy was measured, a config that was right before failed: {}",
                                  to_string(item.sweep.workload()), failure.what()));
  }
}

std::vector<db::Measurement> Tuner::recorded(const Item& item) const {
  auto all = database_.measurements(item.key);
  if (settings_.same_unit)
    std::erase_if(all, [this](const db::Measurement& m) { return m.provenance.uuid != device_.info().uuid; });
  return all;
}

/// On all cores: measured by an earlier run, on another machine perhaps, they need not be in the cache here, and the
/// worker would compile one after the other. False: stopped.
bool Tuner::compile_finalists(Item& item, const std::vector<Contender>& finalists) {
  const auto& configs = item.sweep.planned().configs;
  std::vector<std::size_t> indices;
  for (const Contender& finalist : finalists) {
    const auto at = std::find_if(configs.begin(), configs.end(),
                                 [&](const Config& config) { return config.name() == finalist.config.name(); });
    if (at != configs.end()) indices.push_back(static_cast<std::size_t>(at - configs.begin()));
  }
  for (std::size_t i : indices) compile(item, i);
  return std::all_of(indices.begin(), indices.end(), [&](std::size_t i) { return wait_for(item, i); });
}

void Tuner::hold_and_record_final(Item& item, double seconds) {
  const auto finalists = enter_final(item.sweep.contenders(), settings_.final);
  if (finalists.size() < 2) return;
  FinalSettings settings = settings_.final;
  settings.max_seconds = seconds;
  observer_.final_begins(status(item), finalists.size());
  if (!compile_finalists(item, finalists)) return;
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

TuneStatus Tuner::status(const Item& item) const {
  TuneStatus status;
  status.done = queue_->measured();
  status.total = status.done + queue_->remaining();
  status.seconds = elapsed();
  const double each = status.done == 0 ? 0 : status.seconds / static_cast<double>(status.done);
  status.seconds_left = each * static_cast<double>(status.total - status.done);
  if (settings_.budget_seconds)
    status.seconds_left = std::min(status.seconds_left, std::max(0.0, *settings_.budget_seconds - status.seconds));
  status.workload = &item.sweep.workload();
  status.leader = item.sweep.leader();
  return status;
}

}  // namespace rowtune
