#pragma once
// The workers of a tune: one a device, each with a thread of its own here that schedules it. Devices of one model share
// a queue of workloads and pool their results; those of another model keep their own.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "db/database.hpp"
#include "tuner/plan.hpp"
#include "tuner/tune.hpp"
#include "tuner/worker_device.hpp"
#include "tuner/worker_measurer.hpp"

namespace rowtune {

/// Devices by what makes results comparable: model, limits, toolchain and kernels.
struct WorkerGroup {
  std::vector<std::unique_ptr<WorkerMeasurer>> workers;
  std::vector<std::unique_ptr<WorkerDevice>> devices;  ///< of the workers, in their order
  Plan plan;
};

/// The ids behind `cuda:all`, `cuda:0,cuda:1` or a single id. Throws UsageError, and EnvironmentError where `cuda:all`
/// finds no usable GPU.
std::vector<std::string> device_ids(const std::string& text);

/// Starts all workers at once and groups them.
std::vector<WorkerGroup> start_workers(const std::vector<WorkerSettings>& settings);

/// Tunes every group; blocks until all are done. The first error of any worker stops the others and is thrown.
TuneReport tune_with(std::vector<WorkerGroup>& groups, const std::string& database, TuneSettings settings,
                     TuneObserver& observer, const std::atomic<bool>& interrupted);

/// The same on workers that go on to other plans: each group gets its own from its device and the database.
using Planner = std::function<Plan(const Device&, db::Database&)>;
TuneReport plan_and_tune(std::vector<WorkerGroup>& groups, const std::string& database, const Planner& plan,
                         const TuneSettings& settings, TuneObserver& observer, const std::atomic<bool>& interrupted);

}  // namespace rowtune
