#include "kernels/cpu/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <vector>

#include "kernels/cpu/launch.hpp"
#include "kernels/cpu/processor.hpp"
#include "kernels/cpu/slot.hpp"
#include "kernels/cpu/verify.hpp"
#include "kernels/space.hpp"

namespace rowtune::cpu {
namespace {

constexpr std::int64_t mib = 1 << 20;
constexpr std::int64_t max_single_launches = 100;
constexpr std::int64_t rotation_low = 64 * mib, rotation_high = 512 * mib;

/// Bytes that `cold` rotates through: four times the last cache, within what a laptop can spare.
std::int64_t rotation_goal(const DeviceInfo& info) {
  return std::clamp(4 * info.cache_bytes, rotation_low, rotation_high);
}

}  // namespace

std::int64_t slots_for(const Workload& w, const DeviceInfo& info) {
  if (w.regime != Regime::cold) return 1;
  const std::int64_t each = std::max<std::int64_t>(bytes_moved(w), 1);
  // Tiny tensors would need a slot per few bytes: their guards and pages count as distance too.
  return std::clamp<std::int64_t>((rotation_goal(info) + each - 1) / each, 1,
                                  std::max<std::int64_t>(1, rotation_goal(info) / slot_bytes(w)));
}

std::int64_t launches_for(const Workload& w) {
  const double expected_us = 1.0 + static_cast<double>(bytes_moved(w)) / 40e3;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(1000 / expected_us));
}

namespace {

class CpuBench final : public Bench {
 public:
  CpuBench(const Workload& workload, const DeviceInfo& info)
      : workload_(workload), info_(info), launches_(launches_for(workload)) {
    const std::int64_t there = available_memory();
    const auto refuse = [&](const std::string& needed) {
      throw ConfigFailure(Outcome::out_of_memory, fmt::format("{} needs {} MiB of memory and {} MiB are available",
                                                              to_string(workload), needed, there / mib));
    };
    // First what has more elements than there are bytes: its bytes may be too many to count.
    if (workload.shape.rows > there / std::max<std::int64_t>(1, workload.shape.ld))
      refuse(fmt::format("more than {}", there / mib));
    const std::int64_t count = slots_for(workload, info);
    const std::int64_t slots = count + 1;  // one more holds pristine inputs
    const std::int64_t needed = slots * slot_bytes(workload) + 16 * workload.shape.rows * workload.shape.cols;
    if (needed > there / 10 * 9) refuse(fmt::format("{}", needed / mib));
    pristine_.emplace(workload);
    fill_with_test_data(*pristine_, workload, info.units);
    slots_.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      slots_.emplace_back(workload);
      copy_inputs(slots_.back(), *pristine_);
      if (slots_.back().output) slots_.back().output->fill(0);
      if (slots_.back().new_residual) slots_.back().new_residual->fill(0);
    }
    // A launch in place spoils its slot until it is restored: a batch must not come round. With one slot (warm, or
    // huge) launches are timed one by one instead, and there is no point in a batch of hundreds.
    if (workload.options.in_place) launches_ = std::min(launches_, count == 1 ? max_single_launches : count);
  }

  std::unique_ptr<Kernel> load(const Config& config) override;
  std::int64_t launches_per_sample() const override { return launches_; }
  std::int64_t bytes_in_rotation() const override {
    return static_cast<std::int64_t>(slots_.size()) * bytes_moved(workload_);
  }

  Verification verify(Launcher& launcher, const Config& config) {
    if (!expected_) expected_.emplace(workload_, *pristine_, info_.units);
    Slot& slot = slots_.front();
    copy_inputs(slot, *pristine_);
    if (slot.output) slot.output->fill(0xff);  // NaN in every dtype
    if (slot.new_residual) slot.new_residual->fill(0xff);
    launcher(slot.tensors(workload_));
    const Verification verification = expected_->check(slot, *pristine_, config);
    copy_inputs(slot, *pristine_);
    return verification;
  }

  double sample(Launcher& launcher) {
    using Clock = std::chrono::steady_clock;
#pragma omp parallel num_threads(launcher.threads())
    {}  // the team of this many threads exists and is awake
    const bool in_place = workload_.options.in_place;
    const std::int64_t batch = in_place && slots_.size() == 1 ? 1 : launches_;
    std::chrono::duration<double, std::micro> time{0};
    for (std::int64_t done = 0; done < launches_; done += batch) {
      const auto start = Clock::now();
      for (std::int64_t i = 0; i < batch; ++i) launcher(next_slot().tensors(workload_));
      time += Clock::now() - start;
      if (in_place) restore(batch);
    }
    return time.count() / static_cast<double>(launches_);
  }

  void launch(Launcher& launcher) {
    launcher(next_slot().tensors(workload_));
    if (workload_.options.in_place) restore(1);
  }

 private:
  Slot& next_slot() {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    return slot;
  }

  /// The inputs of the last `count` slots that were used.
  void restore(std::int64_t count) {
    const std::size_t all = slots_.size();
    for (std::int64_t i = 1; i <= count; ++i) {
      Slot& slot = slots_[(next_ + all - static_cast<std::size_t>(i) % all) % all];
      slot.input.copy_from(pristine_->input);
      if (slot.residual) slot.residual->copy_from(*pristine_->residual);
    }
  }

  Workload workload_;
  const DeviceInfo& info_;
  std::int64_t launches_;
  std::optional<Slot> pristine_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  std::optional<Expectation> expected_;
};

class CpuKernel final : public Kernel {
 public:
  CpuKernel(CpuBench& bench, const Workload& workload, const Config& config)
      : bench_(bench), config_(config), launcher_(workload, config) {}

  KernelFacts facts() const override { return {}; }
  Verification verify() override { return bench_.verify(launcher_, config_); }
  double sample() override { return bench_.sample(launcher_); }
  void launch() override { bench_.launch(launcher_); }

 private:
  CpuBench& bench_;
  Config config_;
  Launcher launcher_;
};

std::unique_ptr<Kernel> CpuBench::load(const Config& config) {
  if (workload_.regime == Regime::overlapped)
    throw ConfigFailure(Outcome::launch_error,
                        "the cpu device has no overlapped launches: a launch returns when it is done; use the regime "
                        "cold or warm");
  parse_config(config.name(), workload_, info_);
  return std::make_unique<CpuKernel>(*this, workload_, config);
}

}  // namespace

void compute_once(const Workload& w, const Config& config, const HostTensors& tensors, const DeviceInfo& info) {
  parse_config(config.name(), w, info);
  Slot slot(w);
  const std::int64_t element = size_of(w.dtype);
  const auto width = static_cast<std::size_t>(w.shape.cols * element);
  const auto skip = w.shape.off * element;
  const auto fill = [&](GuardedMatrix* to, const void* from, std::int64_t rows, std::int64_t offset) {
    for (std::int64_t r = 0; to && r < rows; ++r)
      std::memcpy(to->row(r), static_cast<const std::byte*>(from) + offset + r * w.shape.ld * element, width);
  };
  fill(&slot.input, tensors.input, w.shape.rows, skip);
  fill(slot.residual ? &*slot.residual : nullptr, tensors.residual, w.shape.rows, skip);
  fill(slot.weight ? &*slot.weight : nullptr, tensors.weight, 1, 0);
  fill(slot.bias ? &*slot.bias : nullptr, tensors.bias, 1, 0);
  Launcher(w, config)(slot.tensors(w));
  for (std::int64_t r = 0; r < w.shape.rows; ++r)
    std::memcpy(static_cast<std::byte*>(tensors.output) + skip + r * w.shape.ld * element, slot.written().row(r),
                width);
}

std::unique_ptr<Bench> open_bench(const Workload& workload, const DeviceInfo& info) {
  try {
    return std::make_unique<CpuBench>(workload, info);
  } catch (const std::bad_alloc&) {
    throw ConfigFailure(Outcome::out_of_memory,
                        fmt::format("{} does not fit into the memory of this machine", to_string(workload)));
  }
}

}  // namespace rowtune::cpu
