#include "kernels/cpu/launch.hpp"

#include <fmt/format.h>
#include <hwy/cache_control.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>

namespace rowtune::cpu {
namespace {

constexpr std::int64_t slice_granule = 64;  // columns: slices never share a cache line of an aligned row

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

void Launcher::Free::operator()(float* p) const { std::free(p); }

Launcher::Launcher(const Workload& workload, const Config& config)
    : kernel_(find_kernel(workload, config)),
      threads_(std::max(1, config.block_size())),
      group_(std::max(1, config.rows_per_warp())),
      splits_(std::max(1, config.split_count())),
      prefetch_(config.get('p', 0)),
      bypass_(config.get('n', 0) == 1) {
  const Shape& shape = workload.shape;
  if (splits_ > 1 ? !kernel_.reduce : !(kernel_.rows || kernel_.reduce))
    throw ConfigFailure(Outcome::compile_error,
                        fmt::format("config '{}' is not among the kernels compiled for {} on {}", config.name(),
                                    to_string(workload), simd_target()));
  slice_cols_ = splits_ == 1 ? shape.cols : round_up((shape.cols + splits_ - 1) / splits_, slice_granule);
  rows_at_once_ = std::max(1, threads_ / splits_);
  const int tasks = splits_ == 1 ? threads_ : rows_at_once_ * splits_;
  if (splits_ > 1) partials_.resize(2 * static_cast<std::size_t>(tasks));
  if (kernel_.keeps_row && !kernel_.rows) {
    kept_stride_ = round_up(slice_cols_, slice_granule) + 2 * slice_granule;  // kernels keep whole pairs of vectors
    const auto bytes = static_cast<std::size_t>(tasks * kept_stride_) * sizeof(float);
    kept_.reset(static_cast<float*>(std::aligned_alloc(64, std::max<std::size_t>(bytes, 64))));
    if (!kept_)
      throw ConfigFailure(Outcome::out_of_memory, fmt::format("config '{}' wants {} bytes to keep rows in, more than "
                                                              "there is; use one that keeps none (k0)",
                                                              config.name(), bytes));
  }
}

void Launcher::operator()(const Tensors& tensors) {
  if (tensors.rows == 0 || tensors.cols == 0) return;
  Tensors t = tensors;
  t.bypass = bypass_;
  t.ahead = prefetch_ * t.ld * (splits_ > 1 ? rows_at_once_ : 1);
  if (splits_ > 1)
    run_slices(t);
  else
    run_rows(t);
}

void Launcher::run_rows(const Tensors& t) {
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
  {
    // Whole groups of rows for each thread: rows in flight together do not depend on the number of threads.
    const std::int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const std::int64_t groups = (t.rows + group_ - 1) / group_;
    const std::int64_t begin = std::min(t.rows, groups * thread / threads * group_);
    const std::int64_t end = std::min(t.rows, groups * (thread + 1) / threads * group_);
    if (kernel_.prepare) {
      kernel_.prepare(t, begin, end);
#pragma omp barrier
    }
    if (kernel_.rows) {
      kernel_.rows(t, begin, end);
    } else {
      float* kept = kept_ ? kept_of(static_cast<int>(thread)) : nullptr;
      for (std::int64_t row = begin; row < end; ++row) {
        const Slice slice{row, 0, t.cols};
        const Partial whole = kernel_.reduce(t, slice, kept);
        kernel_.finish(t, slice, whole, whole, kept);
      }
    }
    if (bypass_) hwy::FlushStream();  // such stores obey no barrier but this one
  }
}

void Launcher::run_slices(const Tensors& t) {
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
  {
    const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const int tasks = rows_at_once_ * splits_;
    Partial* partials = partials_.data();
    const auto slice_of = [&](std::int64_t first_row, int task) {
      const std::int64_t begin = std::min(t.cols, task % splits_ * slice_cols_);
      return Slice{first_row + task / splits_, begin, std::min(t.cols, begin + slice_cols_)};
    };
    for (std::int64_t row = 0; row < t.rows; row += rows_at_once_) {
      for (int task = thread; task < tasks; task += threads)
        if (const Slice slice = slice_of(row, task); slice.row < t.rows)
          partials[task] = kernel_.reduce(t, slice, kept_ ? kept_of(task) : nullptr);
#pragma omp barrier
      for (int task = thread; task < tasks; task += threads)
        if (const Slice slice = slice_of(row, task); slice.row < t.rows) {
          const Partial* first = partials + task / splits_ * splits_;
          Partial whole = first[0];
          for (int i = 1; i < splits_; ++i) whole = kernel_.merge(whole, first[i]);
          kernel_.finish(t, slice, partials[task], whole, kept_ ? kept_of(task) : nullptr);
        }
      // The next batch writes the other generation: nobody is two batches ahead of anybody, thanks to the barrier.
      partials = partials == partials_.data() ? partials_.data() + tasks : partials_.data();
    }
    if (bypass_) hwy::FlushStream();
  }
}

}  // namespace rowtune::cpu
