#pragma once
// A worker as a process: started with a command line, spoken to by lines, ended.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rowtune {

class WorkerProcess {
 public:
  /// Starts `command` (looked up in PATH) with pipes for its standard input and output; its standard error is ours.
  /// It is a process group of its own: Ctrl-C on a terminal does not reach it. Throws EnvironmentError.
  explicit WorkerProcess(const std::vector<std::string>& command);
  ~WorkerProcess();  ///< closes its input, waits a moment for it to end, then kills it
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// False when it no longer listens.
  bool send(const std::string& line);
  enum class Reading { line, timeout, closed };
  Reading read_line(std::string& line, double seconds);
  /// Kills its process group and waits for it.
  void end();
  /// How it ended, in words: `was killed by signal 11 (Segmentation fault)`. Ends it when it has not.
  std::string obituary();

 private:
  void reap(int options);

  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::string unread_;
  std::optional<int> status_;
};

/// The words of a launcher such as `srun --gpus=1`: split at blanks, quotes keep words together. Throws UsageError for
/// a quote that is not closed.
std::vector<std::string> split_words(const std::string& text);

/// The path of this program.
std::string own_program();

}  // namespace rowtune
