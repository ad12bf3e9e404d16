#include "kernels/emulator/hooks.hpp"

#include <fmt/format.h>

#include <cstring>

#include "kernels/emulator/scheduler.hpp"

namespace rowtune::emulator::hooks {

std::uint32_t shuffle(Shuffle kind, std::uint32_t value, int argument) {
  return running().shuffle(kind, value, argument);
}
void block_barrier() { running().block_barrier(); }

void* shared_array(const void* key, std::size_t bytes) {
  return running().thread().block->shared.array(key, bytes, where_now);
}
void* shared_dynamic() { return running().thread().block->shared.dynamic(); }
void shared_load(const void* p, std::size_t bytes) {
  Scheduler& s = running();
  s.thread().block->shared.check(p, bytes, SharedMemory::Kind::load, s.now(), where_now);
}
void shared_store(void* p, std::size_t bytes) {
  Scheduler& s = running();
  s.thread().block->shared.check(p, bytes, SharedMemory::Kind::store, s.now(), where_now);
}

void cluster_arrive() { running().cluster_arrive(); }
void cluster_wait() { running().cluster_wait(); }
void cluster_store(float* p, int rank, float value) {
  Scheduler& s = running();
  Block& peer = s.peer(rank);
  std::byte* there = s.thread().block->shared.same_place_in(peer.shared, p, where_now);
  peer.shared.check(there, sizeof value, SharedMemory::Kind::remote_store, s.now(), where_now);
  std::memcpy(there, &value, sizeof value);
}

void global_load(const void* p, std::size_t bytes) {
  Scheduler& s = running();
  s.memory().check(p, bytes, Memory::Kind::load, s.now(), where_now);
}
void global_store(void* p, std::size_t bytes) {
  Scheduler& s = running();
  s.memory().check(p, bytes, Memory::Kind::store, s.now(), where_now);
}
void async_copy16(void* shared, const void* global) {
  Scheduler& s = running();
  global_load(global, 16);
  s.thread().block->shared.begin_async(shared, 16, s.now(), where_now);
  s.thread().copies.push_back({static_cast<std::byte*>(shared), static_cast<const std::byte*>(global)});
}
void async_wait() { running().async_wait(); }

void atomic_load(const void* p, std::size_t bytes) {
  Scheduler& s = running();
  s.memory().check(p, bytes, Memory::Kind::atomic_load, s.now(), where_now);
}
void atomic_store(void* p, std::size_t bytes) {
  Scheduler& s = running();
  s.memory().check(p, bytes, Memory::Kind::atomic_store, s.now(), where_now);
  s.note_progress();
}
void spin_pause() { running().wait_for_other_block(); }
void give_up() {
  throw Fault(FaultKind::gave_up, fmt::format("{}: the kernel gave up waiting and ended itself", where_now()));
}

}  // namespace rowtune::emulator::hooks
