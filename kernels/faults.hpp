#pragma once
// Faults on demand, for tests of what the tuner does about them. The environment variable ROWTUNE_FAULTS is a list
// `FAULT:CONFIG,FAULT:CONFIG...`; CONFIG is a config's name or the beginning of one, and `FAULT!` strikes only the
// first time that a config is tried. Empty or absent: nothing is planted anywhere.

#include <string>
#include <string_view>
#include <vector>

namespace rowtune {

enum class Fault {
  none,
  crash,          ///< the worker dies of a segmentation fault
  kill,           ///< ... of SIGKILL
  leave,          ///< ... by an exit
  stall,          ///< the worker never answers
  garbage,        ///< the worker answers with something that is no answer
  wrong_result,   ///< on cpu it is only said
  compile_error,  ///< likewise
  illegal_write,  ///< cuda only, as are those below: the kernel writes outside its memory
  endless,        ///< the kernel never ends
  shared_memory   ///< the kernel asks for more shared memory than there is
};

const std::vector<std::string>& fault_names();

/// Throws UsageError for a list with an unknown fault. `attempt`: 1 for the first try of a config.
Fault fault_of(std::string_view config, int attempt = 1);

}  // namespace rowtune
