#include "kernels/emulator/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define ROWTUNE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ROWTUNE_ASAN 1
#endif
#endif
#ifdef ROWTUNE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace rowtune::emulator {
namespace {

#ifdef ROWTUNE_ASAN
constexpr std::size_t stack_bytes = 256 * 1024 + 320;
void begin_switch(void** save, const void* stack, std::size_t bytes) {
  __sanitizer_start_switch_fiber(save, stack, bytes);
}
void end_switch(void* saved, const void** stack, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(saved, stack, bytes);
}
#else
// An odd number of cache lines: stacks a power of two apart would all compete for the same sets of the caches.
constexpr std::size_t stack_bytes = 48 * 1024 + 320;
void begin_switch(void**, const void*, std::size_t) {}
void end_switch(void*, const void**, std::size_t*) {}
#endif

constexpr std::uint64_t guard = 0x5afe57ac5afe57acULL;

/// Boost.Context asks for an allocator even where the stack is given.
struct BorrowedStack {
  boost::context::stack_context allocate() { return {}; }
  void deallocate(boost::context::stack_context&) {}
};

}  // namespace

Fiber::Fiber(std::byte* stack, std::size_t bytes, std::function<void()> body)
    : stack_(stack), bytes_(bytes), body_(std::move(body)) {
  std::memcpy(stack_, &guard, sizeof guard);
  boost::context::stack_context context;
  context.sp = stack_ + bytes_;
  context.size = bytes_;
  inside_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(context.sp, context.size, context),
                                  BorrowedStack{},
                                  [this](boost::context::fiber&& scheduler) { return loop(std::move(scheduler)); });
}

Fiber::~Fiber() {
  quit_ = true;
  if (inside_) resume();
}

boost::context::fiber Fiber::loop(boost::context::fiber&& scheduler) {
  outside_ = std::move(scheduler);
  end_switch(nullptr, &outside_stack_, &outside_bytes_);
  while (!quit_) {
    body_();
    suspend();
  }
  begin_switch(nullptr, outside_stack_, outside_bytes_);  // the last switch: the shadow stack goes
  return std::move(outside_);
}

void Fiber::resume() {
  begin_switch(&outside_shadow_, stack_, bytes_);
  inside_ = std::move(inside_).resume();
  end_switch(outside_shadow_, nullptr, nullptr);
}

void Fiber::suspend() {
  begin_switch(&inside_shadow_, outside_stack_, outside_bytes_);
  outside_ = std::move(outside_).resume();
  end_switch(inside_shadow_, &outside_stack_, &outside_bytes_);
}

bool Fiber::stack_intact() const { return std::memcmp(stack_, &guard, sizeof guard) == 0; }

std::byte* Stacks::next() {
  if (used_ == per_slab) {
    void* slab = mmap(nullptr, per_slab * stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED) throw std::bad_alloc();
    slabs_.push_back(static_cast<std::byte*>(slab));
    used_ = 0;
  }
  return slabs_.back() + stack_bytes * used_++;
}

Stacks::~Stacks() {
  for (std::byte* slab : slabs_) {
#ifdef ROWTUNE_ASAN
    // Dead frames stay poisoned, and whoever is given these addresses next would inherit that.
    __asan_unpoison_memory_region(slab, per_slab * stack_bytes);
#endif
    munmap(slab, per_slab * stack_bytes);
  }
}

std::size_t Stacks::bytes() { return stack_bytes; }

}  // namespace rowtune::emulator
