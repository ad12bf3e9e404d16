#pragma once
// Runs a kernel over all rows with the threads and splits of its config.

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/kernel.hpp"

namespace rowtune::cpu {

class Launcher {
 public:
  /// Finds the kernel and allocates its scratch. Throws ConfigFailure where the config is not compiled in, or the
  /// scratch does not fit.
  Launcher(const Workload& workload, const Config& config);

  /// One launch; returns when the outputs are written. The tensors must have the workload's shape.
  void operator()(const Tensors& tensors);

  int threads() const { return threads_; }

 private:
  void run_rows(const Tensors& tensors);
  void run_slices(const Tensors& tensors);
  float* kept_of(int task) { return kept_.get() + task * kept_stride_; }

  struct Free {
    void operator()(float* p) const;
  };
  RowKernel kernel_;
  int threads_ = 1, group_ = 1, splits_ = 1;
  int prefetch_ = 0;             ///< rows ahead
  bool bypass_ = false;          ///< stores go past the caches
  int rows_at_once_ = 1;         ///< rows whose slices are in flight together
  std::int64_t slice_cols_ = 0;  ///< columns of a slice
  std::int64_t kept_stride_ = 0;
  std::unique_ptr<float, Free> kept_;
  std::vector<Partial> partials_;  ///< two generations, so that one barrier a batch is enough
};

}  // namespace rowtune::cpu
