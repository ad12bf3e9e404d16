#pragma once
// What measures a config, as plain records in and plain records out. The tuner knows no more than this, so that the
// measuring can happen in this process (tuner/measure.hpp) or behind a line protocol in another one.

#include <optional>
#include <string>
#include <vector>

#include "db/records.hpp"
#include "kernels/words.hpp"
#include "tuner/statistics.hpp"

namespace rowtune {

struct MeasureRequest {
  Workload workload;
  std::string config;
  bool eligible = true;
  bool is_base = false;
  SamplingLimits limits;
  /// The best time of this workload so far: a config told from it is not sampled any further.
  std::optional<double> time_to_beat_us;
  int attempt = 1;  ///< 2: once more, alone in a clean worker
};

/// Some configs of one workload, sampled in turns: the samples of a round share their moment.
struct InterleaveRequest {
  Workload workload;
  std::vector<std::string> configs;
  bool fresh_buffers = false;  ///< allocate anew, for another placement in memory
  int rounds = 0;
  double max_seconds = 1.0;  ///< ends after the round in which it is spent; at least one round is taken
};

/// Launches of each config, one config after the other, while the energy counter runs.
struct EnergyRequest {
  Workload workload;
  std::vector<std::string> configs;
  double seconds = 1;  ///< of each config: the counter moves in steps of some ten milliseconds
};

class Measurer {
 public:
  virtual ~Measurer() = default;
  /// Checks the whole output, then times. Never throws for a failing config: that is a measurement with its outcome.
  virtual db::Measurement measure(const MeasureRequest& request) = 0;
  /// samples[config][round] in microseconds per launch. Throws ConfigFailure.
  virtual std::vector<std::vector<double>> interleave(const InterleaveRequest& request) = 0;
  /// Joules per launch of the whole device, idle power included; absent where there is no counter. Throws
  /// ConfigFailure.
  virtual std::vector<std::optional<double>> energy(const EnergyRequest&) { return {}; }
  /// How long the buffers opened last took to open.
  virtual double open_seconds() const = 0;
  /// For how long, in all, the device was filling buffers, checking, warming up or sampling.
  virtual double busy_seconds() const = 0;
  /// Gives the buffers of the last workload back.
  virtual void release() = 0;
};

}  // namespace rowtune
