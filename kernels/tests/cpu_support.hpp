#pragma once
// What the tests of the cpu device share: SIMD targets to run on, data to run with, and one checked launch.

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/launch.hpp"
#include "kernels/cpu/slot.hpp"
#include "kernels/cpu/verify.hpp"
#include "kernels/oracle.hpp"
#include "kernels/space.hpp"
#include "rowtune/testdata.cuh"

namespace rowtune::cpu {

/// Runs `body` on every SIMD target that this processor has and the program was compiled for, best last.
inline void on_every_target(const std::function<void()>& body) {
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t rest = all; rest != 0; rest &= rest - 1) {
    const std::int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(target);
    SCOPED_TRACE(simd_target());
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(all);
}

/// Element (row, col) of a tensor (test_input, test_residual, test_weight, test_bias).
using Data = std::function<double(int tensor, std::int64_t row, std::int64_t col)>;

inline Data nearly_normal_data(std::int64_t cols) {
  return [cols](int tensor, std::int64_t r, std::int64_t c) { return test_value(tensor, r, c, cols); };
}

inline void fill(Slot& slot, const Workload& w, const Data& data) {
  const auto matrix = [&](GuardedMatrix& m, int tensor, std::int64_t rows) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < w.shape.cols; ++c) store_element(w.dtype, m.row(r), c, data(tensor, r, c));
  };
  matrix(slot.input, test_input, w.shape.rows);
  if (slot.residual) matrix(*slot.residual, test_residual, w.shape.rows);
  if (slot.weight) matrix(*slot.weight, test_weight, 1);
  if (slot.bias) matrix(*slot.bias, test_bias, 1);
}

/// The inputs of a workload and what must come of them.
class Trial {
 public:
  Trial(const Workload& w, const Data& data) : workload(w), info_(cpu_device_info()), inputs_(w), run_(w) {
    info_.units = 2;  // spaces of the tests do not depend on the machine
    fill(inputs_, w, data);
    expected_.emplace(w, inputs_, 1);
  }

  /// Launches a config twice on poisoned outputs: right everywhere, and the same bits.
  void check(const Config& config) {
    SCOPED_TRACE(to_string(workload) + " " + config.name());
    Launcher launcher(workload, config);
    launch(launcher);
    const std::string bits = written();
    if (!known_right_.contains(bits)) {  // most configs give the bits of another one
      const Verification v = expected_->check(run_, inputs_, config);
      ASSERT_TRUE(v.right) << v.what;
      known_right_.insert(bits);
    }
    ASSERT_EQ(guards(), "");
    launch(launcher);
    ASSERT_TRUE(written() == bits) << "a second launch gave other bits";
  }

  void launch(Launcher& launcher) {
    copy_inputs(run_, inputs_);
    if (run_.output) run_.output->fill(0xff);
    if (run_.new_residual) run_.new_residual->fill(0xff);
    launcher(run_.tensors(workload));
  }

  double output(std::int64_t r, std::int64_t c) { return load_element(workload.dtype, run_.written().row(r), c); }
  double input(std::int64_t r, std::int64_t c) { return load_element(workload.dtype, inputs_.input.row(r), c); }
  const DeviceInfo& info() const { return info_; }
  Slot& slot() { return run_; }

  /// The bytes of every element written, row after row.
  std::string written() {
    std::string bits;
    const auto form = output_form(workload);
    const auto bytes = static_cast<std::size_t>(form.shape.cols * form.element_bytes);
    const auto add = [&](GuardedMatrix& m, std::int64_t r) {
      bits.append(reinterpret_cast<const char*>(m.row(r)), bytes);
    };
    for (std::int64_t r = 0; r < workload.shape.rows; ++r) {
      add(run_.written(), r);
      if (auto* m = run_.written_residual()) add(*m, r);
    }
    return bits;
  }

  Workload workload;

 private:
  std::string guards() {
    for (GuardedMatrix* m :
         {&run_.input, run_.output ? &*run_.output : nullptr, run_.residual ? &*run_.residual : nullptr,
          run_.new_residual ? &*run_.new_residual : nullptr, run_.weight ? &*run_.weight : nullptr,
          run_.bias ? &*run_.bias : nullptr})
      if (m && !m->damage().empty()) return m->damage();
    return "";
  }

  DeviceInfo info_;
  Slot inputs_, run_;
  std::optional<Expectation> expected_;
  std::set<std::string> known_right_;
};

/// Every legal config over axes wider than any space: odd numbers of threads, more threads or slices than rows or
/// columns, all step widths. `eligible_only` leaves out the forms that are known to be unsound.
inline std::vector<Config> legal_and_degenerate_configs(const Workload& w, const DeviceInfo& info, bool eligible_only) {
  std::vector<Config> configs;
  const std::pair<int, int> threads_and_splits[] = {{1, 1}, {1, 2}, {1, 7}, {3, 1}, {2, 2}, {5, 3}};
  for (const Algorithm& algorithm : algorithms_of(DeviceKind::cpu)) {
    if (std::find(algorithm.operations.begin(), algorithm.operations.end(), w.op) == algorithm.operations.end())
      continue;
    if (eligible_only && !algorithm.eligible) continue;
    for (const auto& [threads, splits] : threads_and_splits)
      for (int r : {1, 4})
        for (int v : {1, 2, 4, 8, 16})
          for (int k : {0, 1})
            for (int n : {0, 1}) {
              Config config{algorithm.name, {}};
              bool repeated = false;  // an axis that is not there has one value
              for (const Axis& axis : algorithm.axes(w, info)) {
                const int value = axis.letter == 'b'   ? threads
                                  : axis.letter == 'r' ? r
                                  : axis.letter == 'v' ? v
                                  : axis.letter == 's' ? splits
                                  : axis.letter == 'k' ? k
                                  : axis.letter == 'n' ? n
                                                       : (v == 4 ? 0 : v);  // p
                config.axes.push_back({axis.letter, value});
              }
              repeated = (config.get('k', -1) < 0 && k > 0) || (config.get('n', -1) < 0 && n > 0);
              // Threads divide the work alike for every kernel: one width is enough, and machines may be busy.
              bool legal = !repeated && (threads == 1 || (v == 4 && n == 0));
              for (const Constraint& constraint : algorithm.constraints)
                legal = legal && (constraint.kind != Constraint::Kind::must || constraint.holds(w, info, config));
              if (legal) configs.push_back(config);
            }
  }
  return configs;
}

}  // namespace rowtune::cpu
