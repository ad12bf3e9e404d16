#include "tuner/compile_ahead.hpp"

#include <chrono>
#include <utility>

namespace rowtune {

CompileAhead::CompileAhead(Device& device) : device_(device), thread_([this] { work(); }) {}

CompileAhead::~CompileAhead() {
  {
    std::lock_guard lock(mutex_);  // or the thread could miss the notice between its test and its wait
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

CompileAhead::Ticket CompileAhead::add(std::vector<Job> jobs, bool urgent) {
  std::lock_guard lock(mutex_);
  queue_.emplace(urgent ? queue_.begin() : queue_.end(), ++added_, std::move(jobs));
  pending_.insert(added_);
  changed_.notify_all();
  return added_;
}

bool CompileAhead::wait(Ticket ticket, const std::atomic<bool>& stop,
                        const std::function<void(std::size_t, std::size_t)>& waiting) {
  std::unique_lock lock(mutex_);
  while (pending_.contains(ticket) && !error_) {
    if (stop) return false;  // set by a signal handler, which cannot notify: hence the short waits
    changed_.wait_for(lock, std::chrono::milliseconds(100));
    if (waiting && pending_.contains(ticket)) {
      lock.unlock();
      waiting(batch_done_, batch_total_);
      lock.lock();
    }
  }
  if (error_) std::rethrow_exception(error_);
  return true;
}

void CompileAhead::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const auto [ticket, jobs] = std::move(queue_.front());
    queue_.pop_front();
    batch_done_ = 0;
    batch_total_ = jobs.size();
    lock.unlock();
    std::exception_ptr error;
    try {
      device_.compile_ahead(jobs, stop_, [this](std::size_t done, std::size_t) { batch_done_ = done; });
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    pending_.erase(ticket);
    if (error) error_ = error;
    changed_.notify_all();
    if (error) return;
  }
}

}  // namespace rowtune
