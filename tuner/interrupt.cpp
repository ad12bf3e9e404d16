#include "tuner/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace rowtune {
namespace {

// A signal handler reaches nothing else. Lock-free, or it would not be allowed there either.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  if (interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
}

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = false;
  install(on_signal);
}

InterruptGuard::~InterruptGuard() { install(SIG_DFL); }

const std::atomic<bool>& InterruptGuard::requested() const { return interrupted; }

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes: a write that fails, like any other
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // Reading mode: whatever is written there fails, as it must when standard output is closed.
    if (open("/dev/null", O_RDONLY) != descriptor) return;
  }
}

}  // namespace rowtune
