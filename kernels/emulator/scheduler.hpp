#pragma once
// Inside of the emulated machine: blocks, warps and threads, and who goes on next.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/emulator/fiber.hpp"
#include "kernels/emulator/hooks.hpp"
#include "kernels/emulator/machine.hpp"
#include "kernels/emulator/shared.hpp"

namespace rowtune::emulator {

struct Block;
struct Warp;

enum class Waiting { nothing, block_barrier, shuffle, cluster_barrier, other_block };

struct Thread : Here {
  Fiber fiber;
  Warp* warp = nullptr;
  Block* block = nullptr;
  std::uint32_t number = 0;   ///< in the launch
  std::uint32_t arrived = 0;  ///< cluster barriers
  std::uint32_t waited = 0;
  Waiting waiting = Waiting::nothing;
  bool finished = true;
  struct Copy {
    std::byte* to;
    const std::byte* from;
  };
  std::vector<Copy> copies;  ///< asynchronous, not landed yet

  Thread(std::byte* stack, std::function<void()> body) : fiber(stack, Stacks::bytes(), std::move(body)) {}
};

struct Warp {
  std::vector<Thread*> lanes;
  std::uint32_t ready = 0;
  std::uint32_t finished = 0;
  bool listed = false;
  // The shuffle under way. Two buffers in turn: a lane may be at the next shuffle while others still fetch.
  std::uint32_t at_shuffle = 0;
  int kind = 0;
  int argument = 0;
  int parity = 0;
  std::uint32_t values[2][32] = {};
};

struct Cluster {
  int threads = 0;
  int arrivals = 0;         ///< at the barrier under way
  std::uint32_t phase = 0;  ///< barriers completed
  std::vector<Block*> blocks;
};

struct Block {
  std::int64_t index = 0;
  std::vector<Warp> warps;
  std::vector<Thread*> threads;
  SharedMemory shared;
  Cluster* cluster = nullptr;
  std::uint32_t epoch = 0;
  int at_barrier = 0;
  int finished = 0;
  std::uint32_t stored_until = 0;  ///< cluster barriers that must follow the stores of peers into this block
};

class Scheduler {
 public:
  Scheduler(Memory& memory, std::uint64_t seed);
  void reseed(std::uint64_t seed) { random_ = seed * 0x9e3779b97f4a7c15ULL + 0x1234567; }
  void run(const Grid& grid, const std::function<void()>& kernel);

  Counters counters;

  // For the hooks (called in a thread's fiber).
  Moment now() const;
  Memory& memory() { return memory_; }
  Thread& thread() { return *current_; }
  void block_barrier();
  std::uint32_t shuffle(int kind, std::uint32_t value, int argument);
  void cluster_arrive();
  void cluster_wait();
  Block& peer(int rank);
  void async_wait();
  void wait_for_other_block();
  void note_progress() { ++progress_; }
  std::string where() const;

 private:
  struct Abandoned {};
  void run_group(const std::vector<std::int64_t>& blocks, std::uint32_t first_ordinal);
  void run_warps();
  void resume(Thread& thread);
  void body(Thread& thread);
  void leave(Thread& thread);
  void make_ready(Warp& warp, std::uint32_t lanes);
  void stop(Waiting why);
  bool wake_spinners();
  [[noreturn]] void report_stuck();
  void abandon();
  std::uint64_t draw();
  std::uint64_t draw_below(std::uint64_t n) { return (draw() >> 33) % n; }

  Memory& memory_;
  Stacks stacks_;
  std::vector<std::unique_ptr<Thread>> threads_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<Warp*> ready_;
  std::vector<Thread*> spinners_;
  Thread* current_ = nullptr;
  const Grid* grid_ = nullptr;
  const std::function<void()>* kernel_ = nullptr;
  std::size_t group_threads_ = 0;
  std::size_t live_ = 0;
  std::uint64_t progress_ = 0;
  std::uint64_t progress_at_wake_ = 0;
  std::uint64_t random_ = 1;
  bool abandoning_ = false;
  std::exception_ptr failure_;
};

/// The scheduler whose thread runs now: set while Machine::run is under way. A GPU thread knows where it is without
/// being told; this is what stands for that.
Scheduler& running();
std::string where_now();

}  // namespace rowtune::emulator
