#include "kernels/emulator/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace rowtune::emulator {
namespace {

constexpr std::uint32_t all_lanes = 0xffffffffu;
constexpr std::size_t most_threads = 1 << 17;  ///< at once

constinit thread_local Scheduler* running_scheduler = nullptr;

const char* describe(Waiting why) {
  switch (why) {
    case Waiting::block_barrier:
      return "waits in block_barrier";
    case Waiting::shuffle:
      return "waits in a shuffle";
    case Waiting::cluster_barrier:
      return "waits in cluster_wait";
    case Waiting::other_block:
      return "waits for a word of another block";
    default:
      return "runs";
  }
}

}  // namespace

Scheduler& running() { return *running_scheduler; }
std::string where_now() { return running_scheduler->where(); }

Scheduler::Scheduler(Memory& memory, std::uint64_t seed) : memory_(memory) { reseed(seed); }

std::uint64_t Scheduler::draw() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ * 0x2545f4914f6cdd1dULL;
}

std::string Scheduler::where() const {
  if (!current_) return grid_->kernel;
  return fmt::format("{}, block {} of {}, thread {}", grid_->kernel, current_->block->index, grid_->blocks,
                     current_->thread_index);
}

Moment Scheduler::now() const {
  const auto threads = static_cast<std::uint32_t>(grid_->threads);
  return {current_->number,  current_->block->epoch,
          current_->arrived, current_->waited,
          threads,           threads * static_cast<std::uint32_t>(grid_->cluster)};
}

// ------------------------------------------------------------------------------------------------------ the grid

void Scheduler::run(const Grid& grid, const std::function<void()>& kernel) {
  if (grid.threads < 32 || grid.threads > 1024 || grid.threads % 32 != 0)
    throw std::invalid_argument(fmt::format("a block of {} threads", grid.threads));
  if (grid.blocks < 1 || grid.cluster < 1 || grid.blocks % grid.cluster != 0)
    throw std::invalid_argument(fmt::format("{} blocks in clusters of {}", grid.blocks, grid.cluster));
  std::vector<std::vector<std::int64_t>> groups;
  if (grid.resident) {
    groups.emplace_back(static_cast<std::size_t>(grid.blocks));
    std::iota(groups[0].begin(), groups[0].end(), std::int64_t{0});
  } else {
    std::vector<std::int64_t> leaders;
    if (grid.only.empty()) {
      for (std::int64_t b = 0; b < grid.blocks; b += grid.cluster) leaders.push_back(b);
    } else {
      for (std::int64_t b : grid.only) leaders.push_back(b / grid.cluster * grid.cluster);
      std::sort(leaders.begin(), leaders.end());
      leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
    }
    for (std::int64_t leader : leaders) {
      groups.emplace_back(static_cast<std::size_t>(grid.cluster));
      std::iota(groups.back().begin(), groups.back().end(), leader);
    }
    for (std::size_t i = groups.size(); i > 1; --i) std::swap(groups[i - 1], groups[draw_below(i)]);
  }

  grid_ = &grid;
  kernel_ = &kernel;
  memory_.begin_launch();
  ++counters.launches;
  Scheduler* const outer = std::exchange(running_scheduler, this);
  std::uint32_t ordinal = 0;
  try {
    for (const auto& group : groups) {
      run_group(group, ordinal);
      ordinal += static_cast<std::uint32_t>(group.size());
    }
  } catch (...) {
    abandon();
    running_scheduler = outer;
    current_ = nullptr;
    here = nullptr;
    throw;
  }
  running_scheduler = outer;
}

void Scheduler::run_group(const std::vector<std::int64_t>& blocks, std::uint32_t first_ordinal) {
  const auto block_threads = static_cast<std::size_t>(grid_->threads);
  group_threads_ = blocks.size() * block_threads;
  if (group_threads_ > most_threads)
    throw std::invalid_argument(fmt::format("{} emulated threads at once; at most {}", group_threads_, most_threads));
  while (threads_.size() < group_threads_) {
    threads_.push_back(std::make_unique<Thread>(stacks_.next(), [this, i = threads_.size()] { body(*threads_[i]); }));
  }
  while (blocks_.size() < blocks.size()) blocks_.push_back(std::make_unique<Block>());
  const std::size_t cluster_blocks = static_cast<std::size_t>(grid_->cluster);
  while (clusters_.size() < blocks.size() / cluster_blocks) clusters_.push_back(std::make_unique<Cluster>());

  ready_.clear();
  spinners_.clear();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    Block& block = *blocks_[b];
    Cluster& cluster = *clusters_[b / cluster_blocks];
    if (b % cluster_blocks == 0) {
      cluster.threads = static_cast<int>(cluster_blocks * block_threads);
      cluster.arrivals = 0;
      cluster.phase = 0;
      cluster.blocks.clear();
    }
    cluster.blocks.push_back(&block);
    block.index = blocks[b];
    block.cluster = &cluster;
    block.epoch = 0;
    block.at_barrier = block.finished = 0;
    block.stored_until = 0;
    block.shared.begin(static_cast<std::size_t>(grid_->dynamic_shared));
    block.threads.resize(block_threads);
    block.warps.resize(block_threads / 32);
    for (std::size_t w = 0; w < block.warps.size(); ++w) {
      Warp& warp = block.warps[w];
      warp.lanes.resize(32);
      warp.finished = warp.at_shuffle = 0;
      warp.ready = 0;
      warp.listed = false;
    }
    for (std::size_t t = 0; t < block_threads; ++t) {
      Thread& thread = *threads_[b * block_threads + t];
      thread.thread_index = static_cast<int>(t);
      thread.block_index = static_cast<unsigned>(block.index);
      thread.grid_blocks = static_cast<unsigned>(grid_->blocks);
      thread.cluster_rank = static_cast<int>(b % cluster_blocks);
      thread.warp = &block.warps[t / 32];
      thread.block = &block;
      thread.number = static_cast<std::uint32_t>((first_ordinal + b) * block_threads + t);
      thread.arrived = thread.waited = 0;
      thread.waiting = Waiting::nothing;
      thread.finished = false;
      thread.copies.clear();
      block.threads[t] = &thread;
      thread.warp->lanes[t % 32] = &thread;
    }
    for (Warp& warp : block.warps) make_ready(warp, all_lanes);
  }
  counters.blocks += static_cast<std::int64_t>(blocks.size());
  live_ = group_threads_;
  progress_ = 1;
  progress_at_wake_ = 0;
  run_warps();
}

void Scheduler::run_warps() {
  while (true) {
    if (ready_.empty()) {
      if (live_ == 0) return;
      if (!wake_spinners()) report_stuck();
      continue;
    }
    const std::size_t at = draw_below(ready_.size());
    Warp& warp = *ready_[at];
    ready_[at] = ready_.back();
    ready_.pop_back();
    while (warp.ready != 0) {
      // The next ready lane behind a random one.
      const int from = static_cast<int>(draw() >> 59);
      const int lane = (std::countr_zero(std::rotr(warp.ready, from)) + from) % 32;
      warp.ready &= ~(1u << lane);
      resume(*warp.lanes[static_cast<std::size_t>(lane)]);
    }
    warp.listed = false;
  }
}

void Scheduler::make_ready(Warp& warp, std::uint32_t lanes) {
  warp.ready |= lanes;
  if (warp.listed) return;
  warp.listed = true;
  ready_.push_back(&warp);
}

void Scheduler::resume(Thread& thread) {
  ++counters.steps;
  current_ = &thread;
  here = &thread;
  thread.waiting = Waiting::nothing;
  thread.fiber.resume();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  current_ = nullptr;
}

void Scheduler::body(Thread& thread) {
  try {
    if (abandoning_) throw Abandoned{};
    (*kernel_)();
    leave(thread);
  } catch (const Abandoned&) {
  } catch (...) {
    if (!abandoning_) failure_ = std::current_exception();
  }
  thread.finished = true;
}

void Scheduler::leave(Thread& thread) {
  Block& block = *thread.block;
  Warp& warp = *thread.warp;
  if (!thread.fiber.stack_intact())
    throw Fault(FaultKind::stack, fmt::format("{}: more than {} bytes of stack", where(), Stacks::bytes()));
  if (!thread.copies.empty())
    throw Fault(FaultKind::async_copy,
                fmt::format("{}: ends with asynchronous copies that were not waited for", where()));
  if (warp.at_shuffle != 0)
    throw Fault(FaultKind::shuffle, fmt::format("{}: ends while lane {} of its warp waits in a shuffle of all lanes",
                                                where(), std::countr_zero(warp.at_shuffle)));
  if (block.at_barrier > 0)
    throw Fault(FaultKind::barrier,
                fmt::format("{}: ends while {} threads of its block wait in block_barrier", where(), block.at_barrier));
  if (thread.arrived != thread.waited)
    throw Fault(FaultKind::cluster, fmt::format("{}: ends between cluster_arrive and cluster_wait", where()));
  if (block.stored_until > thread.waited)
    throw Fault(FaultKind::cluster,
                fmt::format("{}: may end before a peer's store into its shared memory arrives", where()));
  warp.finished |= 1u << (thread.thread_index % 32);
  ++block.finished;
  --live_;
  note_progress();
}

// ----------------------------------------------------------------------------------------------- what makes threads
// wait

void Scheduler::stop(Waiting why) {
  Thread& thread = *current_;
  thread.waiting = why;
  thread.fiber.suspend();
  if (abandoning_) throw Abandoned{};
}

void Scheduler::block_barrier() {
  Block& block = *current_->block;
  if (block.finished > 0)
    throw Fault(FaultKind::barrier, fmt::format("{}: waits in block_barrier, but {} threads of its block have ended",
                                                where(), block.finished));
  if (++block.at_barrier < grid_->threads) {
    stop(Waiting::block_barrier);
    return;
  }
  block.at_barrier = 0;
  ++block.epoch;
  note_progress();
  for (Warp& warp : block.warps)
    make_ready(warp, &warp == current_->warp ? all_lanes & ~(1u << (current_->thread_index % 32)) : all_lanes);
}

std::uint32_t Scheduler::shuffle(int kind, std::uint32_t value, int argument) {
  Warp& warp = *current_->warp;
  const int lane = current_->thread_index % 32;
  if (warp.finished != 0)
    throw Fault(FaultKind::shuffle, fmt::format("{}: a shuffle of all lanes, but lane {} has ended", where(),
                                                std::countr_zero(warp.finished)));
  if (warp.at_shuffle == 0) {
    warp.kind = kind;
    warp.argument = argument;
  } else if (warp.kind != kind || warp.argument != argument) {
    throw Fault(FaultKind::shuffle, fmt::format("{}: its shuffle is not the one that lane {} of its warp waits in",
                                                where(), std::countr_zero(warp.at_shuffle)));
  }
  const int parity = warp.parity;
  warp.values[parity][lane] = value;
  warp.at_shuffle |= 1u << lane;
  if (warp.at_shuffle != all_lanes) {
    stop(Waiting::shuffle);
  } else {
    warp.at_shuffle = 0;
    warp.parity ^= 1;
    make_ready(warp, all_lanes & ~(1u << lane));
  }
  const bool is_xor = kind == hooks::shuffle_xor_float || kind == hooks::shuffle_xor_int;
  const int source = is_xor ? lane ^ argument : lane / argument * argument;
  if (source < 0 || source > 31)
    throw Fault(FaultKind::shuffle, fmt::format("{}: shuffles from lane {}", where(), source));
  return warp.values[parity][source];
}

void Scheduler::cluster_arrive() {
  Thread& thread = *current_;
  Cluster& cluster = *thread.block->cluster;
  if (thread.arrived != thread.waited)
    throw Fault(FaultKind::cluster, fmt::format("{}: cluster_arrive twice without cluster_wait", where()));
  ++thread.arrived;
  if (++cluster.arrivals < cluster.threads) return;
  cluster.arrivals = 0;
  ++cluster.phase;
  note_progress();
  for (Block* block : cluster.blocks) {
    for (Thread* waiter : block->threads)
      if (waiter->waiting == Waiting::cluster_barrier) make_ready(*waiter->warp, 1u << (waiter->thread_index % 32));
  }
}

void Scheduler::cluster_wait() {
  Thread& thread = *current_;
  Cluster& cluster = *thread.block->cluster;
  if (thread.arrived == thread.waited)
    throw Fault(FaultKind::cluster, fmt::format("{}: cluster_wait without cluster_arrive", where()));
  if (cluster.phase == thread.waited) stop(Waiting::cluster_barrier);
  ++thread.waited;
}

Block& Scheduler::peer(int rank) {
  Thread& thread = *current_;
  Cluster& cluster = *thread.block->cluster;
  if (rank < 0 || rank >= static_cast<int>(cluster.blocks.size()))
    throw Fault(FaultKind::cluster,
                fmt::format("{}: stores to block {} of a cluster of {}", where(), rank, cluster.blocks.size()));
  Block& block = *cluster.blocks[static_cast<std::size_t>(rank)];
  if (thread.waited == 0)
    throw Fault(FaultKind::cluster,
                fmt::format("{}: stores into block {} of its cluster, which may not have begun", where(), rank));
  if (block.finished > 0)
    throw Fault(FaultKind::cluster,
                fmt::format("{}: stores into block {} of its cluster, which has left", where(), rank));
  block.stored_until = std::max(block.stored_until, thread.arrived + 1);
  return block;
}

void Scheduler::async_wait() {
  for (const auto& copy : current_->copies) {
    current_->block->shared.check(copy.to, 16, SharedMemory::Kind::async_store, now(), where_now);
    std::memcpy(copy.to, copy.from, 16);
  }
  current_->copies.clear();
}

void Scheduler::wait_for_other_block() {
  if (!grid_->resident && grid_->blocks > 1)
    throw Fault(FaultKind::residency,
                fmt::format("{}: waits for a word in a launch whose blocks need not be resident together", where()));
  spinners_.push_back(current_);
  stop(Waiting::other_block);
}

bool Scheduler::wake_spinners() {
  if (spinners_.empty() || progress_ == progress_at_wake_) return false;
  progress_at_wake_ = progress_;
  for (Thread* t : spinners_) make_ready(*t->warp, 1u << (t->thread_index % 32));
  spinners_.clear();
  return true;
}

// ------------------------------------------------------------------------------------------------------- when it ends
// badly

void Scheduler::report_stuck() {
  FaultKind kind = FaultKind::deadlock;
  std::string text;
  int listed = 0;
  for (std::size_t i = 0; i < group_threads_; ++i) {
    const Thread& t = *threads_[i];
    if (t.finished) continue;
    if (t.waiting == Waiting::shuffle) kind = FaultKind::shuffle;
    if (t.waiting == Waiting::block_barrier && kind == FaultKind::deadlock) kind = FaultKind::barrier;
    // The first of each warp that waits for the same thing.
    const Thread* before = i % 32 == 0 ? nullptr : threads_[i - 1].get();
    if (before && before->waiting == t.waiting) continue;
    if (++listed <= 8)
      text += fmt::format("{}block {} thread {} {}", text.empty() ? "" : ", ", t.block->index, t.thread_index,
                          describe(t.waiting));
  }
  if (listed > 8) text += fmt::format(" and {} more", listed - 8);
  throw Fault(kind, fmt::format("{}: every thread waits: {}", grid_->kernel, text));
}

void Scheduler::abandon() {
  abandoning_ = true;
  for (std::size_t i = 0; i < std::min(group_threads_, threads_.size()); ++i) {
    Thread& t = *threads_[i];
    if (t.finished) continue;
    current_ = &t;
    here = &t;
    t.fiber.resume();
  }
  abandoning_ = false;
  failure_ = nullptr;
}

}  // namespace rowtune::emulator
