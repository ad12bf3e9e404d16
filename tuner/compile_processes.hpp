#pragma once
// Compiles in processes of its own, into the cache on disk. Threads that call NVRTC 13.0 in one process wait for each
// other: they filled no more than five cores, of 16 as of 32, with hundreds of sources queued (18 a second).

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tuner/worker_process.hpp"

namespace rowtune {

class CompileProcesses {
 public:
  /// `command` starts one that speaks as `serve_as_compiler`.
  explicit CompileProcesses(std::vector<std::string> command) : command_(std::move(command)) {}

  /// As many at once as there are callers; each has a process to itself, which the next caller goes on with. True when
  /// a process dealt with it: whatever is wrong with the source is told again when the config is loaded. False when
  /// none could be started, or none understands: then the caller compiles.
  bool compile(const std::string& source);

 private:
  static constexpr double seconds_to_start = 30, seconds_of_one = 120;  ///< what takes longer hangs
  /// One that has said that it is ready; null when none is to be had.
  std::unique_ptr<WorkerProcess> take();

  std::vector<std::string> command_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<WorkerProcess>> idle_;
  bool useless_ = false;  ///< one was not ready: no other is tried
};

/// The other side: says a line when it is ready; a JSON string a line on standard input is then a source for
/// sm_<architecture>, answered by a line when it is in the cache, or failed. Returns an exit code at the end of the
/// input.
int serve_as_compiler(int architecture);

}  // namespace rowtune
