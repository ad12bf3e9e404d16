#include "kernels/emulator/machine.hpp"

#include "kernels/emulator/scheduler.hpp"

namespace rowtune::emulator {

Machine::Machine(std::uint64_t seed) : scheduler_(std::make_unique<Scheduler>(memory_, seed)) {}
Machine::~Machine() = default;

void Machine::reseed(std::uint64_t seed) { scheduler_->reseed(seed); }
void Machine::run(const Grid& grid, const std::function<void()>& kernel) { scheduler_->run(grid, kernel); }
Counters Machine::counters() const { return scheduler_->counters; }

}  // namespace rowtune::emulator
