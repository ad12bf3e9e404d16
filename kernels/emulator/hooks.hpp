#pragma once
// What the emulated primitives call: nothing here is a template, so that kernels compile fast. Every function may throw
// Fault, and those that wait may switch to another thread of the grid.

#include <cstddef>
#include <cstdint>

namespace rowtune::emulator {

struct Here {
  int thread_index = 0;
  unsigned block_index = 0;
  unsigned grid_blocks = 0;
  int cluster_rank = 0;
};
/// Of the emulated thread that runs now, in this thread of the host.
inline constinit thread_local const Here* here = nullptr;

namespace hooks {

enum Shuffle { shuffle_xor_float, shuffle_xor_int, shuffle_first_float, shuffle_first_int };
std::uint32_t shuffle(Shuffle kind, std::uint32_t value, int argument);
void block_barrier();

void* shared_array(const void* key, std::size_t bytes);
void* shared_dynamic();
void shared_load(const void* p, std::size_t bytes);
void shared_store(void* p, std::size_t bytes);

void cluster_arrive();
void cluster_wait();
void cluster_store(float* p, int rank, float value);

void global_load(const void* p, std::size_t bytes);
void global_store(void* p, std::size_t bytes);
void async_copy16(void* shared, const void* global);
void async_wait();

void atomic_load(const void* p, std::size_t bytes);
void atomic_store(void* p, std::size_t bytes);
void spin_pause();
void give_up();

}  // namespace hooks
}  // namespace rowtune::emulator
