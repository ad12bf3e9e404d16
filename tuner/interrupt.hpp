#pragma once
// SIGINT and SIGTERM: the first asks to end cleanly, the second ends at once.

#include <atomic>

namespace rowtune {

/// While it lives, the first signal sets the flag and the second one does what it always does. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  const std::atomic<bool>& requested() const;
};

/// At the start of the program: a closed pipe becomes a failed write instead of a sudden end, and descriptors 0 to 2
/// are held open, or a database could be opened as number 1 and receive what is printed.
void prepare_standard_streams();

}  // namespace rowtune
