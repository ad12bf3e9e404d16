#pragma once
// The ways rowtune can fail, one type per exit code. A message says what, where, and what to do.

#include <stdexcept>
#include <string>

namespace rowtune {

/// The request itself is wrong: unknown name, impossible shape, illegal config. Exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The surroundings do not allow it: no GPU, unreadable file, foreign database. Exit code 3.
struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The request is fine and the answer is "no such thing": nothing tuned for it. Exit code 1.
struct NotFoundError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// How measuring one config ended. Stored by name in the database.
enum class Outcome {
  ok,
  compile_error,  ///< NVRTC refused the source
  launch_error,   ///< refused at load or launch: too many registers, too much shared memory...
  wrong_result,   ///< an element differs from the oracle by more than the derived tolerance, or a canary died
  timeout,        ///< did not end in time
  crash,          ///< illegal access, or the worker died
  out_of_memory,  ///< the buffers do not fit the device
  implausible     ///< faster than the device's memory can be: an error of measuring, never a result
};

std::string to_string(Outcome outcome);
Outcome parse_outcome(const std::string& name);

/// One config failed; the sweep goes on.
struct ConfigFailure : std::runtime_error {
  ConfigFailure(Outcome kind, const std::string& what) : std::runtime_error(what), outcome(kind) {}
  Outcome outcome;
};

}  // namespace rowtune
