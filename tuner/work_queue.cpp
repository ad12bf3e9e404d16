#include "tuner/work_queue.hpp"

#include <algorithm>
#include <utility>

namespace rowtune {

WorkQueue::Taken WorkQueue::take(std::size_t workload, const void* tuner) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[workload];
  if (entry.holder || entry.finished) return Taken::no;
  entry.holder = tuner;
  const void* last = std::exchange(entry.last, tuner);
  return last && last != tuner ? Taken::changed_by_another : Taken::unchanged;
}

void WorkQueue::give_back(std::size_t workload, bool finished) {
  const std::lock_guard lock(mutex_);
  entries_[workload].holder = nullptr;
  entries_[workload].finished = finished;
  if (finished) entries_[workload].remaining = 0;
}

bool WorkQueue::is_free(std::size_t workload) const {
  const std::lock_guard lock(mutex_);
  return !entries_[workload].holder && !entries_[workload].finished;
}

bool WorkQueue::all_finished() const { return unfinished() == 0; }

std::size_t WorkQueue::unfinished() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.finished; }));
}

void WorkQueue::announce(std::size_t workload, std::size_t configs) {
  const std::lock_guard lock(mutex_);
  if (!entries_[workload].remaining) entries_[workload].remaining = configs;
}

void WorkQueue::set_remaining(std::size_t workload, std::size_t configs) {
  const std::lock_guard lock(mutex_);
  if (!entries_[workload].finished) entries_[workload].remaining = configs;
}

void WorkQueue::count_measured() {
  const std::lock_guard lock(mutex_);
  ++measured_;
}

std::size_t WorkQueue::measured() const {
  const std::lock_guard lock(mutex_);
  return measured_;
}

std::size_t WorkQueue::remaining() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const Entry& entry : entries_) sum += entry.remaining.value_or(0);
  return sum;
}

void WorkQueue::learn(const Workload& workload, const std::vector<Contender>& contenders) {
  const std::lock_guard lock(mutex_);
  neighbours_.add(workload, contenders);
}

std::vector<Hint> WorkQueue::hints(const Workload& workload) const {
  const std::lock_guard lock(mutex_);
  return neighbours_.hints(workload);
}

std::vector<std::string> WorkQueue::winners(const Workload& workload, std::size_t count) const {
  const std::lock_guard lock(mutex_);
  return neighbours_.winners(workload, count);
}

}  // namespace rowtune
