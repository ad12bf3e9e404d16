#pragma once
// The emulated machine: runs a kernel on a grid, a fiber for each thread, in one thread of the host. Which warp and
// which lane go on next is drawn from a seed; a lane runs until a barrier, a shuffle or a wait stops it.
//
// Blocks that must be resident together (a cluster, a grid whose blocks wait for each other) run interleaved. The
// others run one after the other, in an order drawn from the seed: what passes between them would be a race.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/emulator/fault.hpp"
#include "kernels/emulator/memory.hpp"

namespace rowtune::emulator {

struct Grid {
  std::string kernel;       ///< for messages
  std::int64_t blocks = 1;  ///< what grid_blocks() says
  int threads = 32;         ///< of a block: a multiple of 32 up to 1024
  int cluster = 1;
  int dynamic_shared = 0;          ///< bytes
  bool resident = false;           ///< all blocks at once: they may wait for each other
  std::vector<std::int64_t> only;  ///< run these blocks only (virtual launches of huge grids); empty: all
};

struct Counters {
  std::int64_t launches = 0;
  std::int64_t blocks = 0;
  std::int64_t steps = 0;  ///< times that a fiber was resumed
};

class Scheduler;

class Machine {
 public:
  explicit Machine(std::uint64_t seed);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Memory& memory() { return memory_; }
  void reseed(std::uint64_t seed);
  /// Runs `kernel` in every thread. Throws the first Fault; memory is then as the kernel left it.
  void run(const Grid& grid, const std::function<void()>& kernel);
  Counters counters() const;

 private:
  Memory memory_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace rowtune::emulator
