#include "tuner/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace rowtune {
namespace {

constexpr int samples_before_forecast = 21;  ///< fewer give too rough a width to extrapolate from
constexpr int samples_to_be_beaten = 3;
/// With three samples only a gap that no common noise explains ends the sampling; with an interval a small one does.
constexpr double beaten_at_sight = 1.3;
constexpr double beaten_by_interval = 1.03;

/// Largest k >= 1 with 1 - 2 P(Binomial(n, 1/2) < k) >= confidence; 1 when there is none.
int interval_rank(int n, double confidence, double* coverage) {
  int k = 1;
  *coverage = 1 - 2 * binomial_half_cdf(n, 0);
  while (k + 1 <= n / 2) {
    const double next = 1 - 2 * binomial_half_cdf(n, k);
    if (!(next >= confidence)) break;
    *coverage = next;
    ++k;
  }
  return k;
}

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

}  // namespace

double binomial_half_cdf(int n, int k) {
  if (k < 0) return 0;
  if (k >= n) return 1;
  // In logarithms: 2^-n leaves the range of a double beyond n = 1074. Not by lgamma, which writes a global variable.
  double sum = 0, term = -n * std::log(2.0);
  for (int i = 0; i <= k; ++i) {
    sum += std::exp(term);
    term += std::log(static_cast<double>(n - i) / (i + 1));
  }
  return std::min(sum, 1.0);
}

double median(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("the median of no samples");
  std::sort(samples.begin(), samples.end());
  return median_of_sorted(samples);
}

Estimate estimate_median(std::vector<double> samples, double confidence) {
  if (samples.empty()) throw std::invalid_argument("an interval of no samples");
  std::sort(samples.begin(), samples.end());
  Estimate estimate;
  estimate.count = static_cast<int>(samples.size());
  estimate.median = median_of_sorted(samples);
  const int k = interval_rank(estimate.count, confidence, &estimate.coverage);
  estimate.low = samples[static_cast<std::size_t>(k - 1)];
  estimate.high = samples[samples.size() - static_cast<std::size_t>(k)];
  estimate.coverage = std::max(estimate.coverage, 0.0);
  return estimate;
}

SettledEstimate::SettledEstimate(const SamplingLimits& limits, std::optional<double> time_to_beat)
    : limits_(limits), time_to_beat_(time_to_beat) {}

void SettledEstimate::add(double sample, double seconds_spent) {
  if (!(sample > 0) || !std::isfinite(sample))
    throw std::invalid_argument(fmt::format("a timing sample of {} is not a positive number", sample));
  samples_.push_back(sample);
  stop_ = decide(seconds_spent);
}

Estimate SettledEstimate::estimate() const { return estimate_median(samples_); }

Stop SettledEstimate::decide(double seconds_spent) const {
  const int n = static_cast<int>(samples_.size());
  if (time_to_beat_ && n >= samples_to_be_beaten && n < limits_.min_samples) {
    const double least = *std::min_element(samples_.begin(), samples_.end());
    if (least > beaten_at_sight * *time_to_beat_) return Stop::beaten;
  }
  // Below the minimum there is no 95 % interval: a slow config gets four times the time for it before that is given up.
  const bool out_of_time = seconds_spent >= limits_.max_seconds;
  const bool far_out_of_time = seconds_spent >= 4 * limits_.max_seconds && n >= samples_to_be_beaten;
  if (n < limits_.min_samples) return far_out_of_time ? Stop::out_of_reach : Stop::running;

  const Estimate now = estimate();
  const double half_width = 0.5 * (now.high - now.low);
  const double wanted = limits_.relative_half_width * now.median;
  if (half_width <= wanted) return Stop::settled;
  if (time_to_beat_ && now.low > beaten_by_interval * *time_to_beat_) return Stop::beaten;
  if (n >= limits_.max_samples || out_of_time) return Stop::out_of_reach;
  if (n >= samples_before_forecast) {
    const double shrink = half_width / wanted;
    const double needed = n * shrink * shrink;
    // Twice the limit: the forecast itself is rough, and a lucky stretch may still settle.
    if (needed > 2.0 * limits_.max_samples) return Stop::out_of_reach;
  }
  return Stop::running;
}

void SteadyState::add(double sample, double seconds_spent) {
  ++count_;
  reached_ = (count_ > 1 && !(sample < 0.99 * best_)) || count_ >= max_samples_ || seconds_spent >= max_seconds_;
  if (count_ == 1 || sample < best_) best_ = sample;
}

PairedComparison compare_paired(const std::vector<double>& contender, const std::vector<double>& reference,
                                double margin, double confidence) {
  if (contender.size() != reference.size() || contender.empty())
    throw std::invalid_argument("paired samples must come in equal, positive numbers");
  std::vector<double> ratios(contender.size());
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] = contender[i] / reference[i];
  const Estimate e = estimate_median(std::move(ratios), confidence);

  PairedComparison out;
  out.ratio = e.median;
  out.low = e.low;
  out.high = e.high;
  out.coverage = e.coverage;
  out.count = e.count;
  using Verdict = PairedComparison::Verdict;
  if (!(e.coverage >= confidence)) return out;  // too few to say anything
  if (e.low > 1 && e.median > 1 + margin)
    out.verdict = Verdict::slower;
  else if (e.high < 1 && e.median < 1 - margin)
    out.verdict = Verdict::faster;
  else if (e.low >= 1 - margin && e.high <= 1 + margin)
    out.verdict = Verdict::tie;
  return out;
}

}  // namespace rowtune
