#pragma once
// Statistics of timings: medians, intervals that assume no distribution, and when to stop sampling. All of it sees only
// numbers, so that it is tested without a device.
//
// Timings are skewed and have rare large outliers, so the centre is the median and its interval comes from order
// statistics (David & Nagaraja, Order Statistics, 3rd ed., section 7.1): for independent samples the k-th smallest and
// the k-th largest of n bracket the true median with probability 1 - 2 P(Binomial(n, 1/2) < k), whatever the
// distribution is.

#include <optional>
#include <string>
#include <vector>

namespace rowtune {

/// Middle value; mean of the middle two for an even count. Throws std::invalid_argument when empty.
double median(std::vector<double> samples);

/// A median with its interval. `coverage` is what the order statistics really guarantee: at least the confidence asked
/// for, except with too few samples (fewer than 6 for 95 %), where the interval is the range and the coverage says so.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
  double coverage = 0;
  int count = 0;
};

Estimate estimate_median(std::vector<double> samples, double confidence = 0.95);

/// P(Binomial(n, 1/2) <= k), exact to rounding.
double binomial_half_cdf(int n, int k);

struct SamplingLimits {
  int min_samples = 7;  ///< 6 are the fewest that give a 95 % interval; one more leaves room for an outlier
  int max_samples = 120;
  double max_seconds = 0.5;
  double relative_half_width = 0.005;  ///< settled: half the interval is at most this share of the median
};

/// Why sampling stopped.
enum class Stop {
  running,      ///< it has not
  settled,      ///< the interval is as narrow as wanted
  beaten,       ///< told from the time to beat: more samples could not make it the winner
  out_of_reach  ///< a limit was met, or the noise is such that the wanted width lies beyond the limits
};

/// The stopping criterion in three verbs: `add` a sample, ask whether it is `finished`, take the `estimate`.
/// The width of the interval shrinks with the root of the count, so a criterion that has seen a few dozen samples knows
/// how many it would need: when that is beyond the limits it stops at once, instead of chasing a noise target that a
/// 2-microsecond kernel cannot reach.
class SettledEstimate {
 public:
  /// `time_to_beat`: the best so far, if any. A sample set clearly above it stops early.
  explicit SettledEstimate(const SamplingLimits& limits, std::optional<double> time_to_beat = std::nullopt);

  /// `seconds_spent`: the wall time since sampling began, this sample included. Throws std::invalid_argument for a
  /// sample that is not a finite positive number.
  void add(double sample, double seconds_spent);
  bool finished() const { return stop_ != Stop::running; }
  Stop stop() const { return stop_; }
  Estimate estimate() const;
  const std::vector<double>& samples() const { return samples_; }  ///< in the order they came

 private:
  Stop decide(double seconds_spent) const;

  SamplingLimits limits_;
  std::optional<double> time_to_beat_;
  std::vector<double> samples_;
  Stop stop_ = Stop::running;
};

/// When a freshly loaded kernel has warmed up (clocks, caches, page tables): the newest sample no longer beats the best
/// before it by more than a hundredth, or a limit is met.
class SteadyState {
 public:
  explicit SteadyState(double max_seconds, int max_samples = 12)
      : max_seconds_(max_seconds), max_samples_(max_samples) {}
  void add(double sample, double seconds_spent);
  bool reached() const { return reached_; }

 private:
  double max_seconds_;
  int max_samples_;
  int count_ = 0;
  double best_ = 0;
  bool reached_ = false;
};

/// How one contender stands against another, from paired samples (taken one after the other, so that drift hits both).
struct PairedComparison {
  double ratio = 1;  ///< median of contender / reference
  double low = 1, high = 1;
  double coverage = 0;
  int count = 0;
  enum class Verdict { faster, slower, tie, unsure } verdict = Verdict::unsure;
};

/// Interval of the median ratio at `confidence`. faster or slower: the interval lies outside 1 -+ margin on one side,
/// or excludes 1 and its median is beyond the margin; tie: the interval lies within 1 -+ margin; unsure: neither yet.
PairedComparison compare_paired(const std::vector<double>& contender, const std::vector<double>& reference,
                                double margin, double confidence);

}  // namespace rowtune
