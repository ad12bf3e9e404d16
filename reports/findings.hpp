#pragma once
// What reports say beyond the rows: groups, caveats and next steps, computed once for Markdown and for the page.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/database.hpp"

namespace rowtune::reports {

/// One device, as the file knows it.
struct DeviceSummary {
  std::string model, limits, toolchain;
  std::int64_t units = 0, workloads = 0, measured = 0;
  std::string first, last;  ///< of its measurements, UTC
};

/// Failures of one kind with one message.
struct FailureGroup {
  std::string status, reason;  ///< the first line of the message, numbers replaced by N
  std::int64_t count = 0;
  std::string example;  ///< config and workload
};

/// The fastest other library's time of each device model and workload. `copy` is no library: the ceiling, if imported.
using FastestOthers = std::map<std::pair<std::string, Workload>, db::BaselineRow>;
FastestOthers fastest_others(const std::vector<db::BaselineRow>& baselines);

/// How the winners of an operation, dtype, device and regime do, in one line.
struct OperationSummary {
  std::string device_model, op, dtype, regime;
  std::int64_t workloads = 0;
  double mean_gain = 0;  ///< geometric mean over workloads with a base; 0 when there is none
  double best_gain = 0;
  std::string best_gain_shape;
  double median_ceiling_fraction = 0;  ///< 0 when no ceiling was measured
  std::int64_t base_wins = 0;
  std::int64_t configs = 0;     ///< different configs that win somewhere
  std::int64_t compared = 0;    ///< workloads with another library's time
  std::int64_t ahead = 0;       ///< of those, where no other library is faster
  double mean_over_others = 0;  ///< geometric mean of the fastest other's time / rowtune's; 0 without any
};

/// What the newest study says of a method in one arithmetic and order of summation.
struct MethodVerdict {
  std::string op, method, order, dtype;
  std::string sums;  ///< type of the arithmetic
  std::int64_t results = 0;
  std::int64_t bounded = 0, exceeded = 0;    ///< results beside a proven bound, and beyond it
  std::optional<double> worst_share;         ///< the largest error / proven bound
  std::int64_t nonfinite = 0, negative = 0;  ///< results with a NaN or an infinity; with a negative variance
  std::optional<double> lost_at;             ///< the least condition number with fewer than two right digits
  std::string words;                         ///< what that means, in one sentence
  bool fails() const { return exceeded > 0 || nonfinite > 0 || negative > 0 || lost_at.has_value(); }
};

/// Everything that a report reads.
struct Findings {
  std::vector<db::BestRow> best;
  std::vector<db::Coverage> coverage;
  std::vector<db::Failure> failures;
  std::vector<db::BaselineRow> baselines;
  std::vector<db::AccuracyRow> accuracy;
  std::vector<db::StabilityRow> stability;
  std::vector<DeviceSummary> devices;
  std::vector<OperationSummary> operations;  ///< without the copy
  std::vector<FailureGroup> failure_groups;  ///< most frequent first
  std::vector<MethodVerdict> verdicts;       ///< of the methods on the host, by op and method
  std::string sureness;                      ///< how the winners were decided, in one sentence
  std::vector<std::string> caveats;          ///< sentences, only those that apply
  std::vector<std::string> next_steps;       ///< `command`: why; only those that apply
  std::string first, last;                   ///< of all measurements
  std::int64_t measured = 0;
  bool empty() const { return coverage.empty() && stability.empty() && baselines.empty(); }
};

Findings findings_of(const db::Database& database);

/// The message without what differs from config to config, so that equal failures meet.
std::string reason_of(const std::string& message);

}  // namespace rowtune::reports
