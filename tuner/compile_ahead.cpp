#include "tuner/compile_ahead.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>

namespace rowtune {

CompileAhead::CompileAhead(Device& device, unsigned threads) : device_(device), threads_(std::max(1u, threads)) {}

CompileAhead::~CompileAhead() {
  {
    std::lock_guard lock(mutex_);  // or a thread could miss the notice between its test and its wait
    stop_ = true;
  }
  changed_.notify_all();
}

CompileAhead::Ticket CompileAhead::add(const Workload& workload, const Config& config) {
  std::string source = device_.source(workload, config);
  if (source.empty()) return nothing;
  std::lock_guard lock(mutex_);
  const auto [at, is_new] = tickets_.try_emplace(std::move(source), units_.size() + 1);
  if (!is_new) return at->second;
  if (done_ == units_.size()) before_ = done_;
  units_.push_back({&at->first, false});
  queue_.push_back(at->second);
  if (pool_.size() < threads_) pool_.emplace_back([this] { work(); });
  changed_.notify_all();
  return at->second;
}

bool CompileAhead::wait(Ticket ticket, const std::atomic<bool>& stop,
                        const std::function<void(std::size_t, std::size_t)>& waiting) {
  if (ticket == nothing) return !stop;
  std::unique_lock lock(mutex_);
  if (const auto at = std::find(queue_.begin(), queue_.end(), ticket); at != queue_.end()) {
    queue_.erase(at);
    queue_.push_front(ticket);
  }
  while (!units_[ticket - 1].done) {
    if (stop) return false;  // set by a signal handler, which cannot notify: hence the short waits
    const auto told = changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (waiting && told == std::cv_status::timeout && !units_[ticket - 1].done) {
      const std::size_t done = done_ - before_, total = units_.size() - before_;
      lock.unlock();
      waiting(done, total);
      lock.lock();
    }
  }
  return true;
}

void CompileAhead::work() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);  // the worker that measures goes first
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const Ticket ticket = queue_.front();
    queue_.pop_front();
    const std::string& source = *units_[ticket - 1].source;
    lock.unlock();
    try {
      device_.compile(source);
    } catch (const std::exception&) {
      // told again, and recorded, when the config is loaded
    }
    lock.lock();
    units_[ticket - 1].done = true;
    ++done_;
    changed_.notify_all();
  }
}

}  // namespace rowtune
