#include "tuner/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <thread>

#include "kernels/errors.hpp"

namespace rowtune {
namespace {

/// One observer for several tuners.
class Locked : public TuneObserver {
 public:
  explicit Locked(TuneObserver& inner) : inner_(inner) {}
  void compiling(std::size_t done, std::size_t total) override {
    const std::lock_guard lock(mutex_);
    inner_.compiling(done, total);
  }
  void measured(const TuneStatus& status, const db::Measurement& m) override {
    const std::lock_guard lock(mutex_);
    inner_.measured(status, m);
  }
  void final_begins(const TuneStatus& status, std::size_t finalists) override {
    const std::lock_guard lock(mutex_);
    inner_.final_begins(status, finalists);
  }
  void warning(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    inner_.warning(text);
  }

 private:
  TuneObserver& inner_;
  std::mutex mutex_;
};

}  // namespace

std::vector<std::string> device_ids(const std::string& text) {
  std::vector<std::string> ids;
  if (text == "cuda:all") {
    std::string why;
    for (const DeviceInfo& device : list_devices()) {
      if (device.kind != DeviceKind::cuda) continue;
      if (device.usable)
        ids.push_back(device.id);
      else if (why.empty())
        why = device.why_unusable;
    }
    if (ids.empty()) throw EnvironmentError(fmt::format("device cuda:all: there is no usable GPU here: {}", why));
    return ids;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    ids.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  for (const std::string& id : ids)
    if (std::count(ids.begin(), ids.end(), id) > 1)
      throw UsageError(fmt::format("device {} is named twice in '{}'", id, text));
  return ids;
}

std::vector<WorkerGroup> start_workers(const std::vector<WorkerSettings>& settings) {
  std::vector<std::future<std::unique_ptr<WorkerMeasurer>>> starting;
  for (const WorkerSettings& each : settings)
    starting.push_back(std::async(std::launch::async, [each] { return std::make_unique<WorkerMeasurer>(each); }));
  std::vector<WorkerGroup> groups;
  for (auto& future : starting) {
    std::unique_ptr<WorkerMeasurer> worker = future.get();
    const DeviceInfo& info = worker->device();
    const auto alike = std::find_if(groups.begin(), groups.end(), [&](const WorkerGroup& group) {
      const DeviceInfo& other = group.devices.front()->info();
      const auto& operations = all_operations();
      return other.model == info.model && other.limits == info.limits && other.toolchain == info.toolchain &&
             std::all_of(operations.begin(), operations.end(), [&](Operation op) {
               return group.devices.front()->source_fingerprint(op) == worker->source_fingerprint(op);
             });
    });
    WorkerGroup& group = alike == groups.end() ? groups.emplace_back() : *alike;
    group.devices.push_back(std::make_unique<WorkerDevice>(*worker));
    group.workers.push_back(std::move(worker));
  }
  return groups;
}

TuneReport tune_with(std::vector<WorkerGroup>& groups, const std::string& database, TuneSettings settings,
                     TuneObserver& observer, const std::atomic<bool>& interrupted) {
  struct End {
    TuneReport report;
    std::exception_ptr error;
  };
  Locked locked(observer);
  std::atomic<bool> stop{false}, failed{false};
  std::vector<End> outcomes;
  std::size_t workers = 0;
  for (const WorkerGroup& group : groups) workers += group.workers.size();
  outcomes.resize(workers);
  std::atomic<std::size_t> running{workers};
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<WorkQueue>> queues;
  std::size_t next = 0;
  for (WorkerGroup& group : groups) {
    const auto queue = queues.emplace_back(std::make_shared<WorkQueue>(group.plan.workloads.size()));
    settings.workers = static_cast<int>(group.workers.size());
    for (std::size_t i = 0; i < group.workers.size(); ++i, ++next) {
      threads.emplace_back([&, i, queue, settings, &outcome = outcomes[next], &of = group] {
        try {
          db::Database own = db::Database::open(database, db::Database::Mode::read_write);
          Tuner tuner(*of.devices[i], *of.workers[i], own, settings, locked, stop, steady_seconds, queue);
          outcome.report = tuner.run(of.plan);
        } catch (...) {
          outcome.error = std::current_exception();
          failed = true;
        }
        --running;
      });
    }
  }
  while (running > 0) {
    if (interrupted || failed) stop = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (std::thread& thread : threads) thread.join();
  TuneReport sum;
  sum.workers = static_cast<int>(workers);
  for (const End& outcome : outcomes) {
    if (outcome.error) std::rethrow_exception(outcome.error);
    sum.measured += outcome.report.measured;
    sum.failed += outcome.report.failed;
    sum.finals += outcome.report.finals;
    sum.workloads += outcome.report.workloads;
    sum.busy_seconds += outcome.report.busy_seconds;
    sum.seconds = std::max(sum.seconds, outcome.report.seconds);
  }
  // Not the reports' numbers: a worker that ends before the others counts what they are about to measure.
  for (const auto& queue : queues) sum.left += queue->remaining();
  sum.interrupted = interrupted;
  sum.out_of_budget = !interrupted && sum.left > 0;
  return sum;
}

TuneReport plan_and_tune(std::vector<WorkerGroup>& groups, const std::string& database, const Planner& plan,
                         const TuneSettings& settings, TuneObserver& observer, const std::atomic<bool>& interrupted) {
  {
    db::Database file = db::Database::open(database, db::Database::Mode::read_write);
    for (WorkerGroup& group : groups) group.plan = plan(*group.devices.front(), file);
  }
  return tune_with(groups, database, settings, observer, interrupted);
}

}  // namespace rowtune
