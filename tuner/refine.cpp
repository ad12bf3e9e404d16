#include "tuner/refine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "kernels/errors.hpp"
#include "tuner/dispatch_refine.hpp"

namespace rowtune {
namespace {

constexpr std::size_t places_at_once = 16;  ///< of a round: what is measured there serves the places of the next
constexpr double first_configs = 16;        ///< of the first round, when nobody knows how long they take

/// A table, its places, and what the database says of them now.
class Refined {
 public:
  Refined(const db::Database& database, const Spaces& spaces, const RefineSettings& settings,
          const MeasuredTable& measured)
      : database_(database), settings_(settings), head_(measured.head) {
    for (const Shape& shape : places_off_grid(measured, settings.dispatch, settings.places)) {
      const Workload workload{head_.op, head_.dtype, shape, head_.regime, head_.options};
      const Space space = spaces.enumerate(workload);
      std::set<std::string> offered;
      for (const Config& config : space.configs)
        if (spaces.eligible(config)) offered.insert(config.name());
      const auto is_legal = [&spaces, workload, offered](const std::string& name) {
        return offered.contains(name) || (spaces.is_legal && spaces.is_legal(workload, name));
      };
      places_.push_back({workload, space.base.name(), is_legal, {}});
    }
    read();
  }

  std::string name() const { return fmt::format("{} {}", to_string(head_.op), to_string(head_.dtype)); }
  std::size_t places() const { return places_.size(); }

  /// From the database, and the table from it.
  void read() {
    auto query = settings_.only;
    query.device_model = head_.device_model, query.device_limits = head_.device_limits;
    query.op = head_.op, query.dtype = head_.dtype, query.regime = head_.regime, query.options = head_.options;
    const auto rows = database_.leaderboard(query);
    const auto tables = measured_tables(rows, database_.unswept(query));
    if (tables.empty()) throw NotFoundError(fmt::format("{} has lost {}", database_.path(), name()));
    measured_ = tables.front();
    table_ = build_table(measured_, settings_.dispatch);
    std::map<Workload, Place*> by_workload;
    for (Place& place : places_) by_workload[place.workload] = &place;
    base_failed_.clear();
    for (const auto& row : rows) {
      const auto found = by_workload.find(row.workload());
      if (found == by_workload.end()) continue;
      found->second->known.insert(row.config);
      if (row.is_base && !row.time_us) base_failed_.insert(row.workload());
    }
  }

  /// What is missing at the first places where anything is, about as many configs as are affordable.
  std::vector<WantedConfigs> wanted(double affordable) const {
    const Answers answers(measured_, table_);
    std::vector<WantedConfigs> all;
    double configs = 0;
    for (const Place& place : places_) {
      if (base_failed_.contains(place.workload)) continue;  // its buffers do not fit, or worse
      auto missing = answers.wanted_at(place);
      if (missing.empty()) continue;
      if (all.size() == places_at_once || (!all.empty() && configs + double(missing.size()) > affordable)) break;
      configs += double(missing.size());
      all.push_back({place.workload, std::move(missing)});
    }
    return all;
  }

  std::vector<std::string> answers() const { return answers_of(measured_, table_); }

  RefinedTable result() const {
    const MeasuredTable tuned = only_swept(measured_);
    const auto old_answers = answers_of(tuned, build_table(tuned, settings_.dispatch)), new_answers = answers();
    RefinedTable result{head_.op, head_.dtype, 0, {}, {}};
    for (std::size_t i = 0; i < places_.size(); ++i) {
      result.changed += old_answers[i] != new_answers[i];
      result.before.push_back(trial(places_[i], old_answers[i]));
      result.after.push_back(trial(places_[i], new_answers[i]));
    }
    return result;
  }

  bool done = false;  ///< nothing is wanted any more
  int rounds = 0;
  double seconds = 0;  ///< that it had

 private:
  std::vector<std::string> answers_of(const MeasuredTable& measured, const DispatchTable& table) const {
    const Answers answers(measured, table);
    std::vector<std::string> all;
    for (const Place& place : places_) all.push_back(answers.at(place));
    return all;
  }

  Trial trial(const Place& place, const std::string& answer) const {
    Trial trial;
    trial.device_model = head_.device_model, trial.op = head_.op, trial.dtype = head_.dtype;
    trial.shape = place.workload.shape;
    trial.config = answer, trial.is_base = answer == place.base;
    for (const auto& w : measured_.workloads)
      if (!w.swept && w.shape == trial.shape)
        trial.time_us = w.time_of(answer), trial.best_us = w.best_us(), trial.best_config = w.best;
    return trial;
  }

  const db::Database& database_;
  const RefineSettings& settings_;
  DispatchTable head_;
  std::vector<Place> places_;
  std::set<Workload> base_failed_;
  MeasuredTable measured_;
  DispatchTable table_;
};

std::size_t differences(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i];
  return count;
}

}  // namespace

RefineReport refine(const db::Database& database, const Spaces& spaces, const RefineSettings& settings,
                    const MeasureWanted& measure, const std::function<void(const std::string&)>& say,
                    const Clock& now) {
  const double deadline = now() + settings.budget_seconds;
  std::vector<Refined> tables;
  for (const auto& measured : measured_tables(database.leaderboard(settings.only), database.unswept(settings.only)))
    tables.emplace_back(database, spaces, settings, measured);
  if (tables.empty()) throw NotFoundError(fmt::format("{} has nothing tuned that could be refined", database.path()));

  RefineReport report;
  double spent = 0;
  while (!report.interrupted) {
    std::vector<Refined*> open;
    for (Refined& table : tables)
      if (!table.done) open.push_back(&table);
    if (open.empty()) break;
    const double left = deadline - now();
    report.out_of_budget = left <= 0;
    if (report.out_of_budget) break;
    // The turn is that of the table that had the least time; it may take as much as makes all open ones even.
    Refined& table = **std::min_element(open.begin(), open.end(),
                                        [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
    double had = 0;
    for (const Refined* each : open) had += each->seconds;
    const double share = (had + left) / static_cast<double>(open.size()) - table.seconds;
    const double affordable =
        report.measured == 0 ? first_configs : share * static_cast<double>(report.measured) / spent;
    const auto wanted = table.wanted(affordable);
    table.done = wanted.empty();
    if (table.done) continue;
    const double begin = now();
    const TuneReport round = measure(wanted, share);
    spent += now() - begin;
    table.seconds += now() - begin;
    report.measured += round.measured;
    const auto before = table.answers();
    table.read();
    say(fmt::format("{}, round {}: {} results at {} of {} places, {} answers changed by them", table.name(),
                    ++table.rounds, round.measured, wanted.size(), table.places(),
                    differences(before, table.answers())));
    report.interrupted = round.interrupted;
    table.done = round.measured == 0 && !round.out_of_budget;  // what is left cannot be measured
  }
  for (const Refined& table : tables) report.tables.push_back(table.result());
  return report;
}

}  // namespace rowtune
