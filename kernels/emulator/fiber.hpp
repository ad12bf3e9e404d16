#pragma once
// A fiber: a function with a stack of its own that stops in the middle and goes on later. Boost.Context switches,
// AddressSanitizer is told of each switch. Fibers are reused: a finished body is followed by the next one.

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>
#include <vector>

namespace rowtune::emulator {

class Fiber {
 public:
  /// `body` runs at the first resume and again at each resume after it has returned. `stack` is the lowest address.
  Fiber(std::byte* stack, std::size_t bytes, std::function<void()> body);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// From the scheduler: runs the body until it suspends or returns.
  void resume();
  /// From the body: back to whoever resumed.
  void suspend();
  /// False when the body has run over the lowest bytes of its stack.
  bool stack_intact() const;

 private:
  boost::context::fiber loop(boost::context::fiber&& scheduler);

  std::byte* stack_;
  std::size_t bytes_;
  std::function<void()> body_;
  boost::context::fiber inside_;   ///< where the body goes on
  boost::context::fiber outside_;  ///< where the scheduler goes on
  bool quit_ = false;
  // AddressSanitizer keeps a shadow stack for each fiber.
  void* inside_shadow_ = nullptr;
  void* outside_shadow_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

/// Stacks of fibers, made in slabs and never given back before the end.
class Stacks {
 public:
  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  std::byte* next();
  static std::size_t bytes();

 private:
  static constexpr std::size_t per_slab = 64;
  std::vector<std::byte*> slabs_;
  std::size_t used_ = per_slab;
};

}  // namespace rowtune::emulator
