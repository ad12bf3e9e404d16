#include "tuner/final.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace rowtune {
namespace {

using Verdict = PairedComparison::Verdict;

constexpr double slow_base = 1.5;  ///< times the leader

std::vector<double> first_of(const std::vector<double>& samples, std::size_t count) {
  return {samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(count)};
}

class Final {
 public:
  Final(Measurer& measurer, const Workload& workload, const std::vector<Contender>& contenders,
        const FinalSettings& settings)
      : measurer_(measurer), workload_(workload), settings_(settings) {
    for (const Contender& contender : contenders) {
      finalists_.push_back({contender, {}, {}, {}});
      alive_.push_back(true);
      sampled_.push_back(true);
    }
    const std::size_t comparisons = std::max<std::size_t>(1, finalists_.size() - 1);
    confidence_ = 1 - (1 - settings.confidence) / static_cast<double>(comparisons);
  }

  /// One more allocation for everyone still in.
  void sample(bool fresh_buffers, double seconds_left) {
    InterleaveRequest request;
    request.workload = workload_;
    request.fresh_buffers = fresh_buffers;
    request.rounds = settings_.rounds;
    request.max_seconds = seconds_left;
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < finalists_.size(); ++i) {
      if (!sampled_[i]) continue;
      members.push_back(i);
      request.configs.push_back(finalists_[i].contender.config.name());
    }
    const auto samples = measurer_.interleave(request);
    for (std::size_t k = 0; k < members.size(); ++k) {
      Finalist& finalist = finalists_[members[k]];
      finalist.samples_us.insert(finalist.samples_us.end(), samples[k].begin(), samples[k].end());
      finalist.estimate = estimate_median(finalist.samples_us);
    }
  }

  void judge() {
    leader_ = finalists_.size();
    for (std::size_t i = 0; i < finalists_.size(); ++i)
      if (sampled_[i] &&
          (leader_ == finalists_.size() || finalists_[i].estimate.median < finalists_[leader_].estimate.median))
        leader_ = i;
    const auto& leading = finalists_[leader_].samples_us;
    for (std::size_t i = 0; i < finalists_.size(); ++i) {
      // Everyone started together, so the samples of one who left pair with the leader's first.
      Finalist& finalist = finalists_[i];
      finalist.against_leader = compare_paired(finalist.samples_us, first_of(leading, finalist.samples_us.size()),
                                               settings_.margin, confidence_);
      if (i == leader_) finalist.against_leader.verdict = Verdict::tie;
      alive_[i] = finalist.against_leader.verdict != Verdict::slower;
      // A base that is not far behind stays to the end: the gain over it is worth as many samples as the winner's time.
      sampled_[i] = alive_[i] || (finalist.contender.is_base && finalist.against_leader.ratio < slow_base);
    }
  }

  bool decided() const {
    return std::all_of(finalists_.begin(), finalists_.end(), [](const Finalist& finalist) {
      return finalist.against_leader.verdict == Verdict::tie || finalist.against_leader.verdict == Verdict::slower;
    });
  }

  FinalResult result(int allocations) const {
    FinalResult result;
    result.finalists = finalists_;
    result.settled = decided();
    result.worth_keeping = finalists_[leader_].estimate.coverage >= 0.95;
    const Finalist* base = nullptr;
    for (const Finalist& finalist : finalists_)
      if (finalist.contender.is_base) base = &finalist;
    // A config that could not be told from the leader, and is slower than the base by its own median, may not win.
    const Finalist* winner = &finalists_[leader_];
    for (const Finalist& finalist : finalists_)
      if (may_win(finalist) && !(base && finalist.estimate.median > base->estimate.median) &&
          simpler(finalist.contender, winner->contender))
        winner = &finalist;
    result.winner = winner->contender.config.name();
    for (const Finalist& finalist : finalists_)
      if (ties(finalist) && &finalist != winner) result.ties.push_back(finalist.contender.config.name());
    result.method = fmt::format("paired final of {}, {} allocations, {} rounds{}", finalists_.size(), allocations,
                                finalists_[leader_].samples_us.size(),
                                result.settled ? "" : "; a limit came before all were told apart or declared ties");
    return result;
  }

 private:
  /// As fast as the leader by the median of the pairs, and declared a tie, or not told from the leader when a limit
  /// came.
  bool may_win(const Finalist& finalist) const {
    const PairedComparison& c = finalist.against_leader;
    return (c.verdict == Verdict::tie || c.verdict == Verdict::unsure) && c.ratio <= 1 + settings_.alike;
  }
  bool ties(const Finalist& finalist) const {
    const PairedComparison& c = finalist.against_leader;
    return c.verdict == Verdict::tie || (c.verdict == Verdict::unsure && c.low <= 1 + settings_.margin);
  }

  Measurer& measurer_;
  const Workload& workload_;
  const FinalSettings& settings_;
  std::vector<Finalist> finalists_;
  std::vector<bool> alive_;    ///< not told from the leader
  std::vector<bool> sampled_;  ///< alive, or the base
  std::size_t leader_ = 0;
  double confidence_ = 0;
};

}  // namespace

bool simpler(const Contender& a, const Contender& b) {
  const auto key = [](const Contender& c) {
    return std::tuple(!c.is_base, c.config.split_count(), c.config.block_size(), c.config.rows_per_warp(),
                      c.config.vector_width(), c.config.name());
  };
  return key(a) < key(b);
}

std::vector<Contender> enter_final(std::vector<Contender> contenders, const FinalSettings& settings) {
  std::sort(contenders.begin(), contenders.end(),
            [](const Contender& a, const Contender& b) { return a.time_us < b.time_us; });
  std::vector<Contender> entered;
  int by_median = 0, by_interval = 0;
  for (const Contender& contender : contenders) {
    const double limit = contenders.front().time_us * (1 + settings.entry);
    const bool close = contender.time_us <= limit && by_median++ < settings.finalists;
    const bool doubtful = contender.time_us > limit && contender.low_us <= limit && by_interval++ < settings.doubtful;
    if (close || doubtful || contender.is_base) entered.push_back(contender);
  }
  return entered;
}

FinalResult hold_final(Measurer& measurer, const Workload& workload, const std::vector<Contender>& finalists,
                       const FinalSettings& settings, const std::atomic<bool>& stop, const Clock& now) {
  Final contest(measurer, workload, finalists, settings);
  const double start = now();
  int allocations = 0;
  while (true) {
    const double left = settings.max_seconds - (now() - start);
    contest.sample(allocations > 0, std::max(0.0, left / (settings.max_allocations - allocations)));
    contest.judge();
    ++allocations;
    if (contest.decided() && allocations >= settings.min_allocations) break;
    // Buffers that take longer than what they would be used for are not opened again.
    const bool too_late = now() - start + 2 * measurer.open_seconds() >= settings.max_seconds;
    if (allocations >= settings.max_allocations || too_late || stop) break;
  }
  return contest.result(allocations);
}

}  // namespace rowtune
