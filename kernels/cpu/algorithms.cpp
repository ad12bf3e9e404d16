// The search space of the cpu device, as data. README.md says what the axes mean and what was measured.

#include "kernels/algorithms.hpp"

#include <algorithm>

namespace rowtune {
namespace {

using Op = Operation;
using Kind = Constraint::Kind;

// ------------------------------------------------------------------------------------------------------- facts

/// fp32 elements of a SIMD vector; 4 are everywhere.
int lanes_of(const DeviceInfo& d) { return d.architecture > 0 ? d.architecture : 4; }

std::int64_t elements(const Workload& w) { return w.shape.rows * w.shape.cols; }
std::int64_t row_bytes(const Workload& w) { return w.shape.cols * size_of(w.dtype); }
bool is_short_row(const Workload& w, const DeviceInfo& d) { return w.shape.cols <= 16 * lanes_of(d); }

/// Rows ahead that are worth a prefetch: about 2 KB away, and none where rows are so long that the next one would push
/// out the current one.
int useful_prefetch(const Workload& w) { return row_bytes(w) > (256 << 10) ? 0 : row_bytes(w) >= 2048 ? 1 : 4; }

bool one_of(int value, std::initializer_list<int> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

// -------------------------------------------------------------------------------------------------------- axes

/// 1, 2, 4 ... and the number of usable threads itself.
std::vector<int> thread_counts(const DeviceInfo& device) {
  std::vector<int> counts;
  for (int n = 1; n < device.units; n *= 2) counts.push_back(n);
  counts.push_back(std::max(1, device.units));
  return counts;
}

Axis threads(const DeviceInfo& d) { return {'b', "block_size", "threads of a launch", thread_counts(d)}; }
Axis rows_in_flight(std::vector<int> values) {
  return {'r', "rows_per_warp", "rows that a thread works on at once", std::move(values)};
}
Axis vectors(std::vector<int> values) {
  return {'v', "vector_width", "SIMD vectors per step; registers: vectors that hold a row", std::move(values)};
}
Axis splits(std::vector<int> values) {
  return {'s', "split_count", "slices of a row, shared among the threads", std::move(values)};
}
Axis kept() {
  return {'k', "kept", "0: exponentials are computed twice; 1: kept as fp32 until the sum is known", {0, 1}};
}
Axis prefetch() { return {'p', "prefetch", "rows ahead that are asked for while one is computed; 0: none", {0, 1, 4}}; }
Axis bypass() { return {'n', "bypass", "1: results go past the caches (non-temporal stores)", {0, 1}}; }

// ------------------------------------------------------------------------------------------------- constraints

Constraint must(std::string name, std::string meaning,
                bool (*holds)(const Workload&, const DeviceInfo&, const Config&)) {
  return {Kind::must, std::move(name), std::move(meaning), holds};
}
Constraint worth(std::string name, std::string meaning,
                 bool (*holds)(const Workload&, const DeviceInfo&, const Config&)) {
  return {Kind::worth, std::move(name), std::move(meaning), holds};
}

/// What the compiled kernels can do: true of every algorithm.
std::vector<Constraint> common_musts() {
  return {must("apart", "results of a row cannot stand in place of the row",
               [](const Workload& w, const DeviceInfo&, const Config&) {
                 return !(gives_row_results(w.op) && w.options.in_place);
               }),
          must("thread_limit", "b is 1 to 1024",
               [](const Workload&, const DeviceInfo&, const Config& c) {
                 return c.block_size() >= 1 && c.block_size() <= 1024;
               }),
          must("split_limit", "s is 1 to 1024",
               [](const Workload&, const DeviceInfo&, const Config& c) {
                 return c.split_count() >= 1 && c.split_count() <= 1024;
               }),
          must("bypass_values", "n is 0 or 1",
               [](const Workload&, const DeviceInfo&, const Config& c) {
                 return one_of(c.get('n', 0), {0, 1});
               }),
          must("kept_values", "k is 0 or 1",
               [](const Workload&, const DeviceInfo&, const Config& c) {
                 return one_of(c.get('k', 0), {0, 1});
               }),
          must("prefetch_limit", "p is at most 64",
               [](const Workload&, const DeviceInfo&, const Config& c) { return c.get('p', 0) <= 64; })};
}

/// Which points are worth measuring: true of every algorithm.
std::vector<Constraint> common_worths() {
  return {worth("threads", "fewer threads than there are: for small tensors, and in one config to show the scaling",
                [](const Workload& w, const DeviceInfo& d, const Config& c) {
                  const bool plain = c.get('n', 0) == 0 && c.get('p', 0) == 0 && c.get('k', 1) == 1;
                  if (c.block_size() == d.units) return true;
                  if (elements(w) <= (1 << 17)) return c.block_size() == 1 || plain;
                  return c.block_size() == 1 && plain && one_of(c.vector_width(), {4, 16}) && c.rows_per_warp() == 1;
                }),
          worth("bypass", "going past the caches pays for outputs apart from the inputs, of half a megabyte and more",
                [](const Workload& w, const DeviceInfo&, const Config& c) {
                  return c.get('n', 0) == 0 || (!w.options.in_place && bytes_moved(w) >= (1 << 20));
                })};
}

std::vector<Constraint> rules(std::vector<Constraint> own) {
  std::vector<Constraint> all = common_musts();
  all.insert(all.end(), own.begin(), own.end());
  for (auto& constraint : common_worths()) all.push_back(std::move(constraint));
  // Musts first: what is illegal should be said before what is merely not worth it.
  std::stable_partition(all.begin(), all.end(), [](const Constraint& c) { return c.kind == Kind::must; });
  return all;
}

Constraint row_by_row() {
  return must("row_by_row", "r is 1: this algorithm takes one row at a time",
              [](const Workload&, const DeviceInfo&, const Config& c) { return c.rows_per_warp() == 1; });
}

Constraint prefetch_of_use() {
  return worth("prefetch", "the rows about 2 KB ahead, unless a row is too long for it",
               [](const Workload& w, const DeviceInfo&, const Config& c) {
                 return c.get('p', 0) == 0 || (c.get('p', 0) == useful_prefetch(w) && w.shape.rows > 1);
               });
}

Constraint few_long_rows() {
  return worth("few_long_rows", "all threads share a row, where rows are long and few",
               [](const Workload& w, const DeviceInfo&, const Config& c) {
                 return c.split_count() == 1 || (c.split_count() == c.block_size() && c.get('p', 0) == 0 &&
                                                 w.shape.cols >= 4096 && w.shape.rows < 4 * c.block_size());
               });
}

/// Of the algorithms that walk over a row, V vectors at a time.
std::vector<Constraint> walking_rules(std::vector<Constraint> more = {}) {
  more.push_back(must("compiled", "v is 2, 4 or 8: those are compiled into the program",
                      [](const Workload&, const DeviceInfo&, const Config& c) {
                        return one_of(c.vector_width(), {2, 4, 8});
                      }));
  more.push_back(row_by_row());
  more.push_back(worth("short_rows", "short rows belong to registers; one walking config (v4) stays for comparison",
                       [](const Workload& w, const DeviceInfo& d, const Config& c) {
                         return !is_short_row(w, d) || (c.vector_width() == 4 && c.get('k', 1) == 1);
                       }));
  more.push_back(prefetch_of_use());
  more.push_back(few_long_rows());
  return rules(std::move(more));
}

Constraint unshared() {
  return must("unshared", "s is 1: this algorithm does not share a row",
              [](const Workload&, const DeviceInfo&, const Config& c) { return c.split_count() == 1; });
}

// -------------------------------------------------------------------------------------------------- algorithms

using AxesOf = std::function<std::vector<Axis>(const Workload&, const DeviceInfo&)>;

AxesOf walking_axes(std::vector<int> widths) {
  return [widths](const Workload&, const DeviceInfo& d) {
    return std::vector<Axis>{threads(d), rows_in_flight({1}), vectors(widths), splits(thread_counts(d)), prefetch(),
                             bypass()};
  };
}

/// The naive forms: one point, without refinements.
std::vector<Axis> naive_axes(const Workload&, const DeviceInfo& d) {
  return {threads(d), rows_in_flight({1}), vectors({4}), splits({1})};
}

std::vector<Axis> threepass_axes(const Workload& w, const DeviceInfo& d) {
  auto axes = walking_axes({4, 8})(w, d);
  if (w.op == Op::softmax) axes.insert(axes.begin() + 4, kept());
  return axes;
}

Algorithm copy_algorithm() {
  const auto axes = [](const Workload&, const DeviceInfo& d) {
    return std::vector<Axis>{threads(d), rows_in_flight({1}), vectors({2, 4, 8}), splits({1}), bypass()};
  };
  return {"copy",
          "every element from input to output",
          true,
          {Op::copy},
          axes,
          rules({unshared(),
                 must("compiled", "v is 2, 4 or 8: those are compiled into the program",
                      [](const Workload&, const DeviceInfo&, const Config& c) {
                        return one_of(c.vector_width(), {2, 4, 8});
                      }),
                 must("row_by_row", "r is 1: this algorithm takes one row at a time",
                      [](const Workload&, const DeviceInfo&, const Config& c) { return c.rows_per_warp() == 1; })})};
}

Algorithm registers_algorithm() {
  const auto axes = [](const Workload&, const DeviceInfo& d) {
    return std::vector<Axis>{threads(d), rows_in_flight({1, 4}), vectors({1, 2, 4, 8, 16}), splits({1}), prefetch(),
                             bypass()};
  };
  return {
      "registers",
      "a short row is read once and stays in registers; r rows hide each other's reductions",
      true,
      {Op::softmax, Op::log_softmax, Op::layernorm, Op::rmsnorm, Op::fused_add_rmsnorm},
      axes,
      rules({unshared(),
             must("compiled", "r1 with v 1, 2, 4, 8 or 16, r4 with v 1, 2 or 4: those are compiled into the program",
                  [](const Workload&, const DeviceInfo&, const Config& c) {
                    return (c.rows_per_warp() == 1 && one_of(c.vector_width(), {1, 2, 4, 8, 16})) ||
                           (c.rows_per_warp() == 4 && one_of(c.vector_width(), {1, 2, 4}));
                  }),
             must("row_fits", "the row fits into v SIMD vectors",
                  [](const Workload& w, const DeviceInfo& d, const Config& c) {
                    return w.shape.cols <= std::int64_t{c.vector_width()} * lanes_of(d);
                  }),
             must("aligned_bypass", "n1 needs every row at an address aligned to a vector",
                  [](const Workload& w, const DeviceInfo& d, const Config& c) {
                    const std::int64_t vector = lanes_of(d) * std::int64_t{4}, bytes = size_of(w.dtype);
                    return c.get('n', 0) == 0 ||
                           (w.shape.ld * bytes % vector == 0 && w.shape.off * bytes % vector == 0);
                  }),
             prefetch_of_use(),
             worth("row_fills", "the row does not fit into half of the v vectors",
                   [](const Workload& w, const DeviceInfo& d, const Config& c) {
                     return c.vector_width() == 1 || w.shape.cols > c.vector_width() / 2 * lanes_of(d);
                   }),
             worth("pair_bypass", "n1 acts on whole pairs of vectors only",
                   [](const Workload& w, const DeviceInfo& d, const Config& c) {
                     return c.get('n', 0) == 0 || (c.vector_width() > 1 && w.shape.cols >= 2 * lanes_of(d));
                   })})};
}

Algorithm argmax_algorithm() {
  const auto axes = [](const Workload&, const DeviceInfo& d) {
    return std::vector<Axis>{threads(d), rows_in_flight({1}), vectors({4, 8}), splits(thread_counts(d))};
  };
  return {"scan",
          "maximum, sum of exponentials, first place of the maximum: three looks at a row that stays in cache",
          true,
          {Op::argmax_logsumexp},
          axes,
          rules({row_by_row(), few_long_rows(),
                 must("compiled", "v is 4 or 8: those are compiled into the program",
                      [](const Workload&, const DeviceInfo&, const Config& c) {
                        return one_of(c.vector_width(), {4, 8});
                      })})};
}

std::vector<Algorithm> softmax_algorithms() {
  const std::vector<Op> both{Op::softmax, Op::log_softmax};
  const auto recompute_once = worth(
      "recompute", "computing exponentials twice (k0) is tried with the widest step only",
      [](const Workload&, const DeviceInfo&, const Config& c) { return c.get('k', 1) == 1 || c.vector_width() == 8; });
  return {
      {"unsafe", "softmax without the maximum: overflows; shown for comparison", false, both, naive_axes,
       walking_rules({unshared()})},
      {"threepass", "maximum, sum of exponentials, result: three passes over a row that stays in cache", true, both,
       threepass_axes, walking_rules({recompute_once})},
      {"online", "maximum and sum in one read, result from a second", true, both, walking_axes({8}), walking_rules()},
  };
}

std::vector<Algorithm> norm_algorithms() {
  return {
      {"onepass",
       "layernorm from the mean of squares: cancels; shown for comparison",
       false,
       {Op::layernorm},
       naive_axes,
       walking_rules({unshared()})},
      {"twopass",
       "mean, then squared distances, over a row that stays in cache",
       true,
       {Op::layernorm},
       walking_axes({4, 8}),
       walking_rules()},
      {"welford",
       "one read: blocks of v vectors merged by Chan's rule",
       true,
       {Op::layernorm},
       walking_axes({8}),
       walking_rules()},
      {"unfused",
       "the sum for the whole tensor first, then the norm: what fusing saves",
       true,
       {Op::fused_add_rmsnorm},
       naive_axes,
       walking_rules({unshared()})},
      {"squares",
       "mean of squares, then the result, over a row that stays in cache",
       true,
       {Op::rmsnorm, Op::fused_add_rmsnorm},
       walking_axes({4, 8}),
       walking_rules()},
  };
}

}  // namespace

std::vector<Algorithm> cpu_algorithms() {
  std::vector<Algorithm> all{copy_algorithm()};
  for (auto& algorithm : softmax_algorithms()) all.push_back(std::move(algorithm));
  for (auto& algorithm : norm_algorithms()) all.push_back(std::move(algorithm));
  all.push_back(argmax_algorithm());
  all.push_back(registers_algorithm());
  return all;
}

/// All threads, rows one by one, plain passes and stores.
Config cpu_base_config(const Workload& w, const DeviceInfo& device) {
  const auto config = [&](const std::string& algorithm) {
    Config base{algorithm, {{'b', std::max(1, device.units)}, {'r', 1}, {'v', 4}, {'s', 1}}};
    // fp32 exponentials can wait in the output; other types would need a buffer that few would think of.
    if (w.op == Op::softmax) base.axes.push_back({'k', w.dtype == Dtype::f32 ? 1 : 0});
    if (w.op == Op::argmax_logsumexp) return base;
    if (w.op != Op::copy) base.axes.push_back({'p', 0});
    base.axes.push_back({'n', 0});
    return base;
  };
  switch (w.op) {
    case Op::softmax:
    case Op::log_softmax:
      return config("threepass");
    case Op::layernorm:
      return config("twopass");
    case Op::argmax_logsumexp:
      return config("scan");
    case Op::rmsnorm:
    case Op::fused_add_rmsnorm:
      return config("squares");
    case Op::copy:
      break;
  }
  return config("copy");
}

}  // namespace rowtune
