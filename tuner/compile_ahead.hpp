#pragma once
// Compiles on a thread of its own, in the order in which configs will be measured, while the device is busy measuring.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/device.hpp"

namespace rowtune {

class CompileAhead {
 public:
  using Ticket = std::size_t;

  explicit CompileAhead(Device& device);
  ~CompileAhead();  ///< stops after what is in flight

  /// Queues jobs behind what is queued already; `urgent`: before it.
  Ticket add(std::vector<Job> jobs, bool urgent = false);
  /// Returns true when the jobs of the ticket are compiled, false when `stop` was set before. Rethrows what the device
  /// threw. `waiting(done, total)` is called about ten times a second with the progress of the batch in flight.
  bool wait(Ticket ticket, const std::atomic<bool>& stop,
            const std::function<void(std::size_t, std::size_t)>& waiting = {});

 private:
  void work();

  Device& device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<Ticket, std::vector<Job>>> queue_;
  std::set<Ticket> pending_;  ///< queued or in flight
  Ticket added_ = 0;
  std::exception_ptr error_;
  std::atomic<std::size_t> batch_done_{0}, batch_total_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;  ///< last: it uses all of the above
};

}  // namespace rowtune
