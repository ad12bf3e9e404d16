// The CUDA algorithms as data: their axes (axes.hpp), and the constraints that keep a space legal (`must`) and sane
// (`worth`). Which thresholds matter is found by tuning; the `worth` bounds only keep out what measurements showed
// hopeless.

#include "kernels/algorithms.hpp"

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/axes.hpp"
#include "kernels/cuda/plan.hpp"

namespace rowtune {
namespace {

using cuda::row_layout;
using cuda::threads_per_row;
using cuda::vectors_per_thread;
using cuda::widest_vector;

using Kind = Constraint::Kind;

const std::vector<Operation> softmaxes{Operation::softmax, Operation::log_softmax};
const std::vector<Operation> norms{Operation::layernorm, Operation::rmsnorm, Operation::fused_add_rmsnorm};
const std::vector<Operation> reductions{Operation::softmax, Operation::log_softmax,       Operation::layernorm,
                                        Operation::rmsnorm, Operation::fused_add_rmsnorm, Operation::argmax_logsumexp};

// ------------------------------------------------------------------------------------------------- constraints

Constraint must(std::string name, std::string meaning,
                std::function<bool(const Workload&, const DeviceInfo&, const Config&)> holds) {
  return {Kind::must, std::move(name), std::move(meaning), std::move(holds)};
}
Constraint worth(std::string name, std::string meaning,
                 std::function<bool(const Workload&, const DeviceInfo&, const Config&)> holds) {
  return {Kind::worth, std::move(name), std::move(meaning), std::move(holds)};
}
/// A constraint for which the number of rows matters.
Constraint by_rows(Constraint c) {
  c.by_rows = true;
  return c;
}

/// Bytes of a block's weights in shared memory.
std::int64_t shared_weights(const Workload& w, const Config& c) {
  return vectors_per_thread(w, c) * c.block_size() * 16 * ((w.options.weight ? 1 : 0) + (w.options.bias ? 1 : 0));
}

bool rereads_rows(const Config& c) {
  const auto family = cuda::family_of(c.algorithm);
  return c.algorithm != "copy" && (!family || dispatch::rereads(*family));
}

bool one_of(int value, std::initializer_list<int> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// What every algorithm asks of its axes, so that any name that people type is refused with a reason or is right.
std::vector<Constraint> with_common(std::vector<Constraint> own) {
  std::vector<Constraint> all{
      must("apart", "results of a row cannot stand in place of the row",
           [](auto& w, auto&, auto&) { return !(gives_row_results(w.op) && w.options.in_place); }),
      must("threads", "block_size is a multiple of 32 from 32 to the device's limit",
           [](auto&, auto& d, auto& c) {
             return c.block_size() >= 32 && c.block_size() % 32 == 0 && c.block_size() <= d.max_threads_per_block;
           }),
      must("access", "vector_width is 1, 2, 4 or 8 elements, at most 16 bytes",
           [](auto& w, auto&, auto& c) {
             return one_of(c.vector_width(), {1, 2, 4, 8}) && c.vector_width() <= widest_vector(w.dtype);
           }),
      must("lanes", "rows_per_warp is a power of two up to 32; more than 1 in `lanes` only",
           [](auto&, auto&, auto& c) {
             return one_of(c.rows_per_warp(), {1, 2, 4, 8, 16, 32}) &&
                    (c.rows_per_warp() == 1 || c.algorithm == "lanes");
           }),
      must("switches",
           "packed, exp, async are 0 or 1; packed 0 for f32; early 0, 1 or 2; variance 1, 2 or 3; hint 0 or 1, or 2 "
           "where rows are read again",
           [](auto& w, auto&, auto& c) {
             return one_of(c.get('p', 0), {0, 1}) && one_of(c.get('h', 0), {0, 1, rereads_rows(c) ? 2 : 1}) &&
                    one_of(c.get('e', 0), {0, 1, 2}) && one_of(c.get('x', 0), {0, 1}) &&
                    one_of(c.get('a', 0), {0, 1}) && one_of(c.get('w', 3), {1, 2, 3}) &&
                    !(w.dtype == Dtype::f32 && c.get('p', 0) == 1);
           }),
      must("min_blocks", "the blocks of min_blocks fit the threads of a multiprocessor",
           [](auto&, auto& d, auto& c) {
             return c.get('m', 0) >= 0 && c.get('m', 0) * c.block_size() <= d.max_threads_per_unit;
           }),
      must("batch", "batch is from 1 to 16",
           [](auto&, auto&, auto& c) { return c.get('u', 1) >= 1 && c.get('u', 1) <= 16; }),
      must("persistent", "resident_blocks is from 0 to 32",
           [](auto&, auto&, auto& c) { return c.get('g', 0) >= 0 && c.get('g', 0) <= 32; }),
      must("shared_weights",
           "early 2 in `block` and `cluster`, 16 bytes an access, within a block's shared memory; sm_80",
           [](auto& w, auto& d, auto& c) {
             return c.get('e', 0) != 2 || ((c.algorithm == "block" || c.algorithm == "cluster") &&
                                           d.architecture >= 80 && c.vector_width() == widest_vector(w.dtype) &&
                                           shared_weights(w, c) + 1024 <= d.shared_bytes_per_block);
           }),
      must("ahead", "ahead is 0, or 1 with persistent `block`",
           [](auto&, auto&, auto& c) {
             return c.get('l', 0) == 0 || (c.get('l', 0) == 1 && c.get('g', 0) > 0 && c.algorithm == "block");
           }),
  };
  all.insert(all.end(), own.begin(), own.end());
  // Accurate exponentials and the naive variances are studied beside the plain forms of an algorithm.
  all.push_back(worth("arithmetic", "expf and the naive variances beside the plain forms of an algorithm only",
                      [](auto&, auto&, auto& c) {
                        const bool plain = c.get('h', 1) == 1 && c.get('m', 0) == 0;
                        return (c.get('x', 1) == 1 || (plain && c.block_size() == 256)) &&
                               (c.get('w', 3) == 3 || plain);
                      }));
  return all;
}

const Constraint widest_only =
    worth("width", "the widest access, or half of it for rows of less than 64 elements", [](auto& w, auto&, auto& c) {
      const int widest = widest_vector(w.dtype);
      return c.vector_width() == widest || (c.vector_width() * 2 == widest && w.shape.cols < 64);
    });

/// 32-bit registers of row data per thread: 16-bit rows as floats take twice as many; those of a next row, which waits
/// packed, are added.
std::int64_t row_registers(const Workload& w, const Config& c) {
  const std::int64_t floats = vectors_per_thread(w, c) * c.vector_width(), packed = floats * size_of(w.dtype) / 4;
  const std::int64_t waiting = c.get('l', 0) == 1 ? packed * (w.op == Operation::fused_add_rmsnorm ? 2 : 1) : 0;
  return (c.get('p', 0) == 1 ? packed : floats) + waiting;
}

Constraint registers(int limit, Kind kind) {
  return {kind, kind == Kind::must ? "registers" : "row_registers",
          kind == Kind::must ? "a thread's part of the row fits its registers"
                             : "few enough registers of row data to keep several blocks resident",
          [limit](auto& w, auto&, auto& c) { return row_registers(w, c) <= limit; }};
}

/// A launch bound is worth trying where it leaves what the row data needs, and no more than double.
const Constraint bound_fits =
    worth("bound", "min_blocks leaves registers for the row data, and binds", [](auto& w, auto& d, auto& c) {
      const int m = c.get('m', 0);
      if (m == 0) return true;
      const auto per_thread = d.registers_per_unit / (m * c.block_size());
      return per_thread >= 32 && per_thread <= 64 && row_registers(w, c) + 16 <= per_thread;
    });

const Constraint busy_threads =
    worth("idle", "at least half of the threads of a row have an element", [](auto& w, auto&, auto& c) {
      const std::int64_t threads = threads_per_row(c), half = threads / 2 * c.vector_width();
      return threads <= 32 / c.rows_per_warp() ? threads == 1 || half < std::max<std::int64_t>(1, w.shape.cols)
                                               : half < w.shape.cols;
    });

const Constraint early_weights = by_rows(worth(
    "early_weights",
    "weights wait in registers where a thread has at most 4 vectors, and only if there are any; where rows are not "
    "aligned alike, in persistent blocks, or in the shared memory of `lanes`",
    [](auto& w, auto&, auto& c) {
      const int e = c.get('e', 0);
      if (e == 0) return true;
      if (!w.options.weight && !w.options.bias) return false;
      const bool ragged = row_layout(w, c.vector_width()).ragged;
      if (e == 2)
        return vectors_per_thread(w, c) >= 2 && w.shape.cols >= 2048 &&
               (c.get('g', 0) > 0 || (!ragged && c.get('h', 0) == 1));
      if (ragged && c.algorithm == "lanes") return true;
      return vectors_per_thread(w, c) <= 4 && (c.get('g', 0) > 0 || !ragged);
    }));

const Constraint persistent_use =
    by_rows(worth("persistent_use", "persistent blocks where weights wait for many rows, or loads run ahead",
                  [](auto& w, auto& d, auto& c) {
                    const int g = c.get('g', 0), e = c.get('e', 0);
                    if (g == 0) return true;
                    return is_norm(w.op) && (e > 0 || c.get('l', 0) == 1) && c.get('h', 0) == 1 && c.get('w', 3) >= 2 &&
                           g * c.block_size() <= d.max_threads_per_unit && g * c.block_size() >= 512 &&
                           (e != 2 || g * shared_weights(w, c) <= d.shared_bytes_per_block) &&
                           w.shape.rows >= static_cast<std::int64_t>(2) * g * d.units;
                  }));

const Constraint few_rows =
    by_rows(worth("split_size", "several blocks a row only where one block a row leaves multiprocessors idle",
                  [](auto& w, auto& d, auto& c) {
                    const std::int64_t blocks = w.shape.rows * c.split_count();
                    return blocks <= 4 * d.units && blocks * 4 >= std::min<std::int64_t>(d.units, w.shape.rows * 8);
                  }));

const Constraint resident =
    must("resident", "the blocks of one row fit the device at once",
         [](auto&, auto& d, auto& c) { return c.split_count() >= 1 && c.split_count() <= d.units; });
const Constraint whole_row =
    must("split", "split_count is 1", [](auto&, auto&, auto& c) { return c.split_count() == 1; });
const Constraint clusters = must("cluster", "clusters need sm_90; a cluster has a power of two of blocks, at most 16",
                                 [](auto&, auto& d, auto& c) {
                                   return d.max_cluster >= c.split_count() && one_of(c.split_count(), {1, 2, 4, 8, 16});
                                 });
const Constraint grid = by_rows(must("grid", "rows times blocks of a row fit a grid", [](auto& w, auto&, auto& c) {
  return c.split_count() >= 1 && c.split_count() <= 1024 && w.shape.rows <= 2147483647 / c.split_count();
}));
const Constraint widest_access = worth(
    "width", "the widest access", [](auto& w, auto&, auto& c) { return c.vector_width() == widest_vector(w.dtype); });

/// Rows of at least this many elements.
Constraint at_least(std::int64_t cols) {
  return worth("length", "rows long enough for this algorithm",
               [cols](auto& w, auto&, auto&) { return w.shape.cols >= cols; });
}

/// The slots of a row in shared memory: 16 bytes an access, within what a block may have.
std::vector<Constraint> with_shared_row(std::vector<Constraint> own) {
  const std::vector<Constraint> shared{
      must("slot", "an access is 16 bytes",
           [](auto& w, auto&, auto& c) { return c.vector_width() == widest_vector(w.dtype); }),
      must("shared_memory", "a block's part of the row fits its shared memory",
           [](auto& w, auto& d, auto& c) {
             return vectors_per_thread(w, c) * c.block_size() * 16 + 1024 <= d.shared_bytes_per_block;
           }),
      must("async", "asynchronous copies need sm_80",
           [](auto&, auto& d, auto& c) { return c.get('a', 0) == 0 || d.architecture >= 80; }),
      worth("async_plain", "asynchronous copies for operations of one input, which carry no hint",
            [](auto& w, auto&, auto& c) {
              return c.get('a', 0) == 0 || (w.op != Operation::fused_add_rmsnorm && c.get('h', 0) == 1);
            }),
      worth("unroll", "at most 16 vectors a thread",
            [](auto& w, auto&, auto& c) { return vectors_per_thread(w, c) <= 16; })};
  own.insert(own.end(), shared.begin(), shared.end());
  return with_common(own);
}

// -------------------------------------------------------------------------------------------------- algorithms

Algorithm copy() {
  return {"copy",
          "a plain copy: the ceiling",
          true,
          {Operation::copy},
          [](const Workload& w, const DeviceInfo&) {
            return std::vector<Axis>{block_sizes({128, 256, 512}),
                                     rows_per_warp({1}),
                                     vector_widths(w),
                                     splits({1}),
                                     batches({1, 2, 4}),
                                     hints()};
          },
          with_common({whole_row, widest_access})};
}

Algorithm lanes() {
  return {"lanes",
          "one to 32 lanes of a warp per row, the row in registers, shuffles only",
          true,
          reductions,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{block_sizes({128, 256}),
                                   rows_per_warp({32, 16, 8, 4, 2, 1}),
                                   vector_widths(w),
                                   splits({1}),
                                   packing(w),
                                   hints()};
            add_weights(w, axes);
            add_arithmetic(w, axes);
            return axes;
          },
          with_common({whole_row, registers(128, Kind::must), registers(32, Kind::worth), widest_only, busy_threads,
                       early_weights})};
}

Algorithm block() {
  return {"block",
          "one block per row, the row in registers, one barrier",
          true,
          reductions,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{fitting_block_sizes(w, {64, 128, 256, 512, 1024}),
                                   rows_per_warp({1}),
                                   vector_widths(w),
                                   splits({1}),
                                   packing(w),
                                   launch_bounds({0, 2, 3, 4, 8, 16}),
                                   hints()};
            if (is_norm(w.op)) {
              axes.push_back(persistence({0, 1, 2, 4, 8}));
              axes.push_back(ahead());
            }
            add_weights(w, axes, {0, 1, 2});
            add_arithmetic(w, axes);
            return axes;
          },
          with_common({whole_row, registers(128, Kind::must), registers(48, Kind::worth), widest_only, busy_threads,
                       bound_fits, at_least(256), early_weights, persistent_use})};
}

Algorithm shared() {
  return {
      "shared",
      "one block per row, the row in shared memory",
      true,
      reductions,
      [](const Workload& w, const DeviceInfo&) {
        std::vector<Axis> axes{
            block_sizes({256, 512, 1024}), rows_per_warp({1}), vector_widths(w), splits({1}), asynchronous(), hints()};
        add_arithmetic(w, axes);
        return axes;
      },
      with_shared_row({whole_row, at_least(4096)})};
}

Algorithm cluster() {
  return {"cluster",
          "a cluster of blocks per row, the row in registers, merged through distributed shared memory",
          true,
          reductions,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{block_sizes({256, 512, 1024}),
                                   rows_per_warp({1}),
                                   vector_widths(w),
                                   splits({4, 8, 16}),
                                   packing(w),
                                   launch_bounds({0, 4}),
                                   hints()};
            add_weights(w, axes, {0, 1, 2});
            add_arithmetic(w, axes);
            return axes;
          },
          with_common(
              {clusters, grid, registers(128, Kind::must), registers(48, Kind::worth), widest_only, busy_threads,
               bound_fits, at_least(16384), early_weights,
               by_rows(worth("filled", "at least two vectors a thread, but for few rows", [](auto& w, auto&, auto& c) {
                 return vectors_per_thread(w, c) >= 2 || w.shape.rows <= 16;
               }))})};
}

Algorithm cluster_shared() {
  return {"cluster_shared",
          "a cluster of blocks per row, the row in their shared memory",
          true,
          reductions,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{block_sizes({128, 256, 512}), rows_per_warp({1}), vector_widths(w),
                                   splits({2, 4, 8, 16}),        asynchronous(),     hints()};
            add_arithmetic(w, axes);
            return axes;
          },
          with_shared_row({clusters, grid, at_least(32768),
                           by_rows(worth("many_rows", "rows that outnumber the multiprocessors",
                                         [](auto& w, auto& d, auto&) { return w.shape.rows >= d.units; }))})};
}

Algorithm split() {
  return {"split",
          "several blocks per row in one launch, each holds its part in registers; partial results through the L2",
          true,
          reductions,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{block_sizes({128, 256, 512, 1024}), rows_per_warp({1}), vector_widths(w),
                                   splits({4, 8, 16, 32, 64, 128}),    packing(w),         hints()};
            add_weights(w, axes);
            add_arithmetic(w, axes);
            return axes;
          },
          with_common({resident, registers(128, Kind::must), registers(32, Kind::worth), widest_only, busy_threads,
                       at_least(8192), few_rows, early_weights,
                       worth("hinted", "loads marked as touched once",
                             [](auto&, auto&, auto& c) { return c.get('h', 1) == 1 || c.get('x', 1) == 0; })})};
}

Algorithm split_reread() {
  return {"split_reread",
          "several blocks per row in one launch, online; each reads its part again",
          true,
          reductions,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{block_sizes({256, 512}), rows_per_warp({1}), vector_widths(w),
                                   splits({32, 128}),       batches({4}),       hints()};
            add_arithmetic(w, axes);
            return axes;
          },
          with_common({resident, widest_access, few_rows, at_least(262144),
                       worth("hinted", "loads marked as touched once",
                             [](auto&, auto&, auto& c) { return c.get('h', 1) == 1; })})};
}

Algorithm reread() {
  return {"reread",
          "one block per row, one look keeps the reduction, the row is read again from the L2: any length",
          true,
          reductions,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{
                block_sizes({256, 512, 1024}), rows_per_warp({1}), vector_widths(w), splits({1}), batches({4, 2}),
                persistence({0, 1, 2}),        rereading_hints()};
            add_arithmetic(w, axes);
            return axes;
          },
          with_common(
              {whole_row, widest_access,
               worth("plain", "256 threads without hints for all, more and hints for rows of 2048 elements and more",
                     [](auto& w, auto&, auto& c) {
                       return c.block_size() == 256 ? c.get('g', 0) == 0 && c.get('h', 0) == 0 && c.get('u', 4) == 4
                                                    : w.shape.cols >= 2048 && c.get('h', 0) >= 1;
                     }),
               by_rows(worth("persistent_rows", "persistent blocks for rows beyond 65536 elements that outnumber them",
                             [](auto& w, auto& d, auto& c) {
                               return c.get('g', 0) == 0 || (w.shape.cols > 65536 && w.shape.rows >= d.units);
                             }))})};
}

Algorithm plain_passes(const char* name, const char* summary, bool eligible) {
  return {name,
          summary,
          eligible,
          softmaxes,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{block_sizes({256}), rows_per_warp({1}), vector_widths(w), splits({1}), batches({4})};
            add_arithmetic(w, axes);
            return axes;
          },
          with_common({whole_row, widest_access})};
}

Algorithm two_launches() {
  return {"two_launches",
          "several blocks per row, merged by a second launch: the baseline of split",
          true,
          reductions,
          [](const Workload& w, const DeviceInfo&) {
            std::vector<Axis> axes{block_sizes({256}), rows_per_warp({1}), vector_widths(w), splits({8, 32, 128}),
                                   batches({4})};
            add_arithmetic(w, axes);
            return axes;
          },
          with_common({grid,
                       must("one_state", "the parts are merged by Chan's rule",
                            [](auto&, auto&, auto& c) { return c.get('w', 3) == 3; }),
                       widest_access, at_least(8192), few_rows})};
}

Algorithm unfused() {
  return {
      "unfused",
      "the sum of hidden and residual for the whole tensor first, then rmsnorm: what fusing saves",
      true,
      {Operation::fused_add_rmsnorm},
      [](const Workload& w, const DeviceInfo&) {
        return std::vector<Axis>{block_sizes({256}), rows_per_warp({1}), vector_widths(w), splits({1}), batches({4})};
      },
      with_common({whole_row, widest_access})};
}

}  // namespace

std::vector<Algorithm> cuda_algorithms() {
  return {copy(),
          lanes(),
          block(),
          shared(),
          cluster(),
          cluster_shared(),
          split(),
          split_reread(),
          two_launches(),
          reread(),
          unfused(),
          plain_passes("threepass", "one block per row, three looks: max, sum, output", true),
          plain_passes("unsafe", "one block per row without the maximum: overflows where exp does", false)};
}

Config cuda_base_config(const Workload& w, const DeviceInfo&) {
  const int v = widest_vector(w.dtype);
  if (w.op == Operation::copy) return {"copy", {{'b', 256}, {'r', 1}, {'v', v}, {'s', 1}, {'u', 1}, {'h', 0}}};
  // What one writes by hand: a warp per row for short rows, a block per row otherwise.
  Config config = w.shape.cols <= 1024
                      ? Config{"lanes", {{'b', 128}, {'r', 1}, {'v', v}, {'s', 1}, {'p', 0}, {'h', 0}}}
                      : Config{"reread", {{'b', 256}, {'r', 1}, {'v', v}, {'s', 1}, {'u', 4}, {'g', 0}, {'h', 0}}};
  if (is_norm(w.op) && config.algorithm == "lanes") config.axes.push_back({'e', 0});
  if (has_exponentials(w.op)) config.axes.push_back({'x', 1});
  if (w.op == Operation::layernorm) config.axes.push_back({'w', 3});
  return config;
}

}  // namespace rowtune
