#pragma once
// Blocks of one launch that share a row exchange their partial results through the L2, without a fence: a value and
// the launch's tag travel together in one 64-bit word (as NCCL's low-latency protocol does), so whoever sees the tag
// has the value. The tag lives in the workspace and is raised by the last block to leave; a workspace is zeroed once,
// belongs to one stream, and serves any config and number of launches.
//
// Layout of a workspace: 64 bytes of header (launches so far, blocks that left), then for each of at most two merges
// of a row, for each row, for each part, `exchange_words` words.
// All blocks that share a row must be resident together: the launcher bounds the grid by the occupancy of the loaded
// kernel.

#include "rowtune/exchange_layout.cuh"
#include "rowtune/primitives.cuh"

namespace rowtune {

struct ExchangeHeader {
  unsigned launches;
  unsigned left;
  unsigned unused[14];
};

struct Exchange {
  ExchangeHeader* header;
  unsigned tag;

  ROWTUNE_DEVICE explicit Exchange(void* workspace)
      : header(static_cast<ExchangeHeader*>(workspace)), tag(counter_load(&header->launches) + 1) {}

  ROWTUNE_DEVICE u64* slots(i64 first) const { return reinterpret_cast<u64*>(header + 1) + first; }
  ROWTUNE_DEVICE void put(u64* slot, unsigned value) const {
    exchange_store(slot, (static_cast<u64>(tag) << 32) | value);
  }
  /// Waits for the values of this launch in slots first, first + step, ... below `count`, each of `Words` words. All
  /// are asked for at once: a look costs one way to the L2 and back, however many slots a lane has. Bounded: a launch
  /// that breaks the residency rule ends with an error.
  template <int Slots, int Words>
  ROWTUNE_DEVICE void get(const u64* slots, int first, int step, int count, unsigned (&values)[Slots][Words]) const {
    for (unsigned looks = 0; looks < 10u * 1000 * 1000; ++looks) {
      bool all = true;
#pragma unroll
      for (int i = 0; i < Slots; ++i) {
        const int slot = first + i * step;
#pragma unroll
        for (int w = 0; w < Words; ++w) {
          if (slot >= count) break;
          const u64 word = exchange_load(slots + slot * Words + w);
          all = all && static_cast<unsigned>(word >> 32) == tag;
          values[i][w] = static_cast<unsigned>(word);
        }
      }
      if (all) return;
      spin_pause();
    }
    give_up();
  }
  /// By one thread of each block, after its last use (before it writes its outputs, which then hide the latency). The
  /// last block to leave opens the next launch.
  ROWTUNE_DEVICE void leave() const {
    if (counter_add(&header->left, 1) == grid_blocks() - 1) {
      counter_store(&header->left, 0);
      counter_store(&header->launches, tag);
    }
  }
};

}  // namespace rowtune
