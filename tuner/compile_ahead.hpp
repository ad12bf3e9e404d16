#pragma once
// Compiles on all cores, in the order in which configs will be measured, while the device is busy measuring.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "kernels/device.hpp"

namespace rowtune {

class CompileAhead {
 public:
  using Ticket = std::size_t;  ///< configs of one source share it

  explicit CompileAhead(Device& device, unsigned threads = std::thread::hardware_concurrency());
  ~CompileAhead();  ///< stops after what is in flight

  /// Queues a config behind what is queued already. A failure is left for `Bench::load` to report.
  Ticket add(const Workload& workload, const Config& config);
  /// Moves the config to the front and returns true when it is compiled, false when `stop` was set before.
  /// `waiting(done, total)` is called about ten times a second with the progress since there last was nothing to do.
  bool wait(Ticket ticket, const std::atomic<bool>& stop,
            const std::function<void(std::size_t, std::size_t)>& waiting = {});

 private:
  static constexpr Ticket nothing = 0;  ///< there is nothing to compile
  struct Unit {
    const std::string* source;
    bool done;
  };
  void work();

  Device& device_;
  unsigned threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, Ticket> tickets_;
  std::vector<Unit> units_;  ///< by ticket, less one
  std::deque<Ticket> queue_;
  std::size_t done_ = 0, before_ = 0;  ///< units compiled; those before this burst of work
  bool stop_ = false;
  std::vector<std::jthread> pool_;  ///< last: it uses all of the above
};

}  // namespace rowtune
