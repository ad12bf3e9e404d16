#pragma once
// What the emulator reports: a fault that a GPU would hide, with the kernel, block and thread that did it.

#include <stdexcept>
#include <string>

namespace rowtune::emulator {

enum class FaultKind {
  barrier,        ///< a barrier that not all threads of the block reach
  shuffle,        ///< a lane has left, waits elsewhere, or asks for another shuffle than its warp
  bounds,         ///< global memory outside the rows of every tensor, or a store into an input
  alignment,      ///< an access that is not aligned to its size
  uninitialised,  ///< shared or output memory read before it was written
  shared_bounds,  ///< shared memory outside the arrays of the block
  shared_race,    ///< two threads, one shared word, at least one store, no barrier between
  global_race,    ///< the same in global memory, or between blocks: the result depends on their order
  async_copy,     ///< shared memory touched while an asynchronous copy into it may be under way
  cluster,        ///< shared memory of a peer that may not have begun or may have left; unpaired cluster barriers
  residency,      ///< a block waits for another one in a launch that does not keep them resident together
  deadlock,       ///< every thread waits
  gave_up,        ///< the kernel ended itself (give_up)
  stack           ///< a fiber's stack overflowed: the emulator's limit, not the kernel's
};

struct Fault : std::runtime_error {
  Fault(FaultKind k, const std::string& what) : std::runtime_error(what), kind(k) {}
  FaultKind kind;
};

}  // namespace rowtune::emulator
