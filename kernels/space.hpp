#pragma once
// Search spaces as data: an algorithm declares its axes and its constraints; the space of a workload on a device is
// what the constraints leave. Adding an axis value or an algorithm is adding a line to a table
// (kernels/cuda/algorithms.cpp, kernels/cpu/algorithms.cpp).

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/config.hpp"
#include "kernels/device.hpp"
#include "kernels/words.hpp"

namespace rowtune {

struct Axis {
  char letter;
  std::string name;
  std::string meaning;
  std::vector<int> values;
};

struct Constraint {
  /// `must`: the kernel would be wrong or refused without it. `worth`: it only keeps the space sane, and a config that
  /// breaks it is legal (`rowtune run` takes it, and the tests run it).
  enum class Kind { must, worth };
  Kind kind;
  std::string name;
  std::string meaning;
  std::function<bool(const Workload&, const DeviceInfo&, const Config&)> holds;
  /// Whether the number of rows matters; where not, shapes that differ in nothing else have one answer. Said of CUDA's
  /// constraints only.
  bool by_rows = false;
};

struct Algorithm {
  std::string name;
  std::string summary;
  bool eligible;  ///< false: measured and shown, never chosen as best (unsafe forms)
  std::vector<Operation> operations;
  std::function<std::vector<Axis>(const Workload&, const DeviceInfo&)> axes;
  std::vector<Constraint> constraints;
};

struct Space {
  std::vector<Config> configs;  ///< in declared order, the base among them
  Config base;                  ///< what a sensible engineer writes by hand; legal for every shape
  std::int64_t considered = 0;  ///< points before the constraints
  /// Constraint name and the points it was the first to remove.
  std::vector<std::pair<std::string, std::int64_t>> removed;
};

/// The algorithms of a device kind, for all operations.
const std::vector<Algorithm>& algorithms_of(DeviceKind kind);
const Algorithm& algorithm_named(DeviceKind kind, const std::string& name);  ///< throws UsageError

Space enumerate_space(const Workload& workload, const DeviceInfo& device);

/// A config by name, legal for this workload on this device (`must` constraints hold). Throws UsageError that says
/// which part is unknown or which constraint is broken.
Config parse_config(std::string_view name, const Workload& workload, const DeviceInfo& device);

/// Whether a config may be chosen as best: not softmax without the maximum, not one-pass variance.
bool is_eligible(DeviceKind kind, const Config& config);

}  // namespace rowtune
