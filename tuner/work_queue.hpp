#pragma once
// The workloads of a plan, shared by the tuners of several devices of one model: who has which, and what all of them
// have learned. Safe for several threads.

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tuner/neighbours.hpp"

namespace rowtune {

class WorkQueue {
 public:
  explicit WorkQueue(std::size_t workloads) : entries_(workloads) {}

  enum class Taken { no, unchanged, changed_by_another };
  /// Takes a workload that nobody has and that is not finished. `tuner` is whoever asks; `changed_by_another`: somebody
  /// else had it since, and the database knows more of it.
  Taken take(std::size_t workload, const void* tuner);
  void give_back(std::size_t workload, bool finished);
  bool is_free(std::size_t workload) const;
  bool all_finished() const;
  std::size_t unfinished() const;

  /// What a tuner that begins counts: kept where another, which has measured some of them already, came first.
  void announce(std::size_t workload, std::size_t configs);
  void set_remaining(std::size_t workload, std::size_t configs);
  void count_measured();
  std::size_t measured() const;
  std::size_t remaining() const;

  void learn(const Workload& workload, const std::vector<Contender>& contenders);
  std::vector<Hint> hints(const Workload& workload) const;
  std::vector<std::string> winners(const Workload& workload, std::size_t count) const;

 private:
  struct Entry {
    const void* holder = nullptr;  ///< the tuner that has it
    const void* last = nullptr;    ///< that had it last
    bool finished = false;
    std::optional<std::size_t> remaining;  ///< configs; absent: nobody has counted
  };
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
  std::size_t measured_ = 0;
  Neighbours neighbours_;
};

}  // namespace rowtune
