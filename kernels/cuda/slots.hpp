#pragma once
// The tensors of a workload, in as many slots as its regime rotates through. A slot is what one launch touches.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/compiler.hpp"
#include "kernels/cuda/loaded_plan.hpp"
#include "kernels/include/rowtune/launch_args.cuh"
#include "kernels/include/rowtune/oracle_args.cuh"

namespace rowtune::cuda {

class Slots {
 public:
  /// Allocates `count` slots: each tensor with 256 bytes of guard before and behind it.
  Slots(const Workload& workload, std::int64_t count);

  std::int64_t count() const { return count_; }
  static std::int64_t bytes_of_slot(const Workload& workload);  ///< guards included
  RowArgs args(std::int64_t slot) const;

  enum Tensor { input, residual, weight, bias, output, residual_out, tensors };
  bool has(Tensor t) const { return buffers_[t].data() != nullptr; }
  /// The place of slot 0; slots lie `bytes` apart.
  TensorPlace place(Tensor t) const;
  /// Where the operation leaves its result: the input's place when it works in place.
  Tensor result_tensor() const;
  Tensor residual_result_tensor() const;
  const Workload& workload() const { return workload_; }

 private:
  Workload workload_;
  std::int64_t count_;
  DeviceBuffer buffers_[tensors];
  std::int64_t pitch_[tensors] = {};
};

/// The source of the oracle's kernels for an operation and dtype.
std::string oracle_source(const Workload& workload);

/// Fills, poisons, checks and flushes: the kernels of rowtune/oracle.cuh for one operation and dtype.
class OracleKernels {
 public:
  OracleKernels(const Workload& workload, const std::function<Binary(const std::string&)>& compile);
  /// All slots: inputs and weights get test values, outputs poison.
  void fill(const Slots& slots, const Stream& stream) const;
  /// `count` first slots: what an in-place operation overwrote gets its test values again.
  void restore(const Slots& slots, std::int64_t count, const Stream& stream) const;
  /// Slot 0, after one launch on it.
  Verification check(const Slots& slots, double depth, const Stream& stream) const;
  void flush(const DeviceBuffer& scratch, const Stream& stream) const;

 private:
  void fill_tensor(const Slots& slots, Slots::Tensor t, int test_tensor, std::int64_t count,
                   const Stream& stream) const;
  static void check_copy(void* to, const void* from, std::size_t bytes, bool to_device, const Stream& stream);
  LoadedKernel kernels_;
  DeviceBuffer result_;
};

}  // namespace rowtune::cuda
