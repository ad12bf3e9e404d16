#pragma once
// The sweep over many workloads: compile ahead, measure what is missing, record each result, hold the finals.

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/database.hpp"
#include "kernels/device.hpp"
#include "tuner/compile_ahead.hpp"
#include "tuner/final.hpp"
#include "tuner/measurer.hpp"
#include "tuner/plan.hpp"
#include "tuner/sweep.hpp"
#include "tuner/work_queue.hpp"

namespace rowtune {

struct TuneSettings {
  int workers = 1;  ///< tuners that share the queue
  std::optional<double> budget_seconds;
  std::string strategy = "exhaustive";
  StrategyOptions strategy_options;
  SamplingLimits limits;
  bool finals = true;
  FinalSettings final;
  bool energy = false;     ///< joules per launch of the finalists
  bool same_unit = false;  ///< what other units of this model measured does not count, and is replaced
};

struct TuneStatus {
  std::size_t done = 0, total = 0;  ///< configs to measure in this run
  double seconds = 0;               ///< since the run began
  double seconds_left = 0;          ///< an estimate
  const Workload* workload = nullptr;
  std::optional<Contender> leader;  ///< of the workload
};

/// What a tune tells while it runs. All calls come from the thread that called `Tuner::run`.
class TuneObserver {
 public:
  virtual ~TuneObserver() = default;
  virtual void compiling(std::size_t /*done*/, std::size_t /*total*/) {}
  virtual void measured(const TuneStatus&, const db::Measurement&) {}
  virtual void final_begins(const TuneStatus&, std::size_t /*finalists*/) {}
  virtual void warning(const std::string&) {}
};

struct TuneReport {
  std::size_t measured = 0, failed = 0, left = 0;  ///< configs; `left`: not measured for want of time
  std::size_t workloads = 0;                       ///< completed
  std::size_t finals = 0;
  double busy_seconds = 0;  ///< of all devices together
  int workers = 1;
  bool interrupted = false;
  bool out_of_budget = false;
  double seconds = 0;
};

class Tuner {
 public:
  /// Everything must outlive the tuner. `stop` ends the run cleanly after the config in flight. Tuners of several
  /// devices of one model share a queue, each with a database connection of its own on the same file.
  Tuner(Device& device, Measurer& measurer, db::Database& database, TuneSettings settings, TuneObserver& observer,
        const std::atomic<bool>& stop, Clock now = steady_seconds, std::shared_ptr<WorkQueue> queue = nullptr);
  ~Tuner();

  /// Throws EnvironmentError when the database cannot be written; what was recorded before stays.
  TuneReport run(const Plan& plan);

 private:
  struct Item;  ///< a workload in this run
  void start(const Plan& plan);
  void remember_neighbours(const Plan& plan);
  void measure_bases_first(double budget);
  void explore(Item& item, double deadline);
  void measure_one(Item& item, std::size_t config, const SamplingLimits& limits);
  void finish(Item& item, double seconds);
  bool compile_finalists(Item& item, const std::vector<Contender>& finalists);
  void hold_and_record_final(Item& item, double seconds);
  void record_final(Item& item, const FinalResult& result);
  void measure_energy(Item& item);
  std::vector<db::Measurement> recorded(const Item& item) const;
  void consult_neighbours(Item& item);
  void compile_ahead_of(Item& item);
  void compile(Item& item, std::size_t config);
  bool wait_for(Item& item, std::size_t config);
  bool ended(double deadline) const;
  double elapsed() const { return now_() - started_; }
  TuneStatus status(const Item& item) const;
  bool take(Item& item);
  void give_back(Item& item);
  void run_in_turns(double budget);
  void run_in_rounds(double budget);
  void visit(Item& item);
  void complete(Item& item);
  void compile_for_visit(Item& item, std::size_t configs);
  double share_of_one(double budget) const;
  std::vector<Item*> in_order();

  Device& device_;
  Measurer& measurer_;
  db::Database& database_;
  TuneSettings settings_;
  TuneObserver& observer_;
  const std::atomic<bool>& stop_;
  Clock now_;
  std::vector<Item> items_;
  const std::shared_ptr<WorkQueue> given_queue_;  ///< absent: every run has its own
  std::shared_ptr<WorkQueue> queue_;
  std::optional<CompileAhead> compiler_;
  TuneReport report_;
  bool no_energy_ = false;  ///< there is no counter, and that was said
  bool crowded_ = false;    ///< the budget hardly suffices for one config of each workload
  double started_ = 0;
};

}  // namespace rowtune
