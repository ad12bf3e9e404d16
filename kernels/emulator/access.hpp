#pragma once
// Who touched a word last, and whether that is ordered before an access now. Order comes from the barriers of the block
// and of the cluster; shuffles order registers, not memory, and blocks of a launch are not ordered at all.

#include <cstdint>

namespace rowtune::emulator {

/// A thread at a moment, as order sees it.
struct Moment {
  std::uint32_t thread;   ///< number in the launch: ordinal of the block * threads of a block + index
  std::uint32_t epoch;    ///< barriers of its block so far
  std::uint32_t arrived;  ///< barriers of its cluster that it has arrived at
  std::uint32_t waited;   ///< and those it has waited for
  std::uint32_t block_threads;
  std::uint32_t cluster_threads;
};

struct Access {
  std::uint32_t thread = 0;
  std::uint32_t epoch = 0;
  std::uint32_t arrived = 0;
  bool any : 1 = false;      ///< false: no access yet
  bool several : 1 = false;  ///< by several threads of one block
  bool blocks : 1 = false;   ///< by threads of several blocks
  bool atomic : 1 = false;   ///< by exchange_* or counter_*: two of these never race

  static Access of(const Moment& now, bool is_atomic) {
    Access a;
    a.thread = now.thread;
    a.epoch = now.epoch;
    a.arrived = now.arrived;
    a.any = true;
    a.atomic = is_atomic;
    return a;
  }
  /// Whether this access is certainly over, and visible, at `now`.
  bool before(const Moment& now) const {
    if (!any) return true;
    if (blocks) return false;
    if (thread == now.thread && !several) return true;
    if (thread / now.block_threads == now.thread / now.block_threads) return epoch < now.epoch || arrived < now.waited;
    return thread / now.cluster_threads == now.thread / now.cluster_threads && arrived < now.waited;
  }
  /// Adds an access of the same kind; earlier ones that are over are forgotten.
  void add(const Moment& now, bool is_atomic) {
    if (before(now)) {
      *this = of(now, is_atomic);
      return;
    }
    blocks = blocks || thread / now.block_threads != now.thread / now.block_threads;
    several = true;
    epoch = now.epoch;
    arrived = arrived > now.arrived ? arrived : now.arrived;
    atomic = atomic && is_atomic;
  }
};

/// The history of one word. `life` tells the accesses of this launch (or block, for shared memory) from older ones.
struct History {
  std::uint32_t life = 0;
  std::uint32_t run = 0;  ///< global memory: the run that stored it last
  Access store;
  Access load;
};

}  // namespace rowtune::emulator
