// Softmax, log_softmax and log-sum-exp: one factor at a time around a stated centre.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "stability/comparisons.hpp"
#include "stability/formats.hpp"
#include "stability/recipes.hpp"
#include "stability/study.hpp"

namespace rowtune::stability {
namespace {

constexpr std::int64_t centre_n = 1024;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

enum class Ops { softmax_only, all };

std::vector<Result> softmax_of(const Tag& tag, const std::vector<double>& data, Dtype dtype,
                               const ArithmeticChoice& arithmetic, int lanes, Ops ops) {
  const MemoryRow row(data);
  const SoftmaxReference reference = reference_softmax(row);
  if (reference.plus_inf_count > 0) return {};  // the logits do not fit the dtype: nothing to compare
  std::vector<Result> all =
      compare_softmax(tag, Operation::softmax, dtype, arithmetic, row, reference, all_softmax(lanes));
  if (ops == Ops::softmax_only) return all;
  append(all, compare_softmax(tag, Operation::log_softmax, dtype, arithmetic, row, reference, all_log_softmax(lanes)));
  append(all, compare_log_sum_exp(tag, dtype, arithmetic, row, reference, all_softmax(lanes)));
  return all;
}

/// Normal logits: sd * z + offset, rounded to the dtype.
std::vector<double> normal_logits(std::int64_t n, double sd, double offset, std::uint64_t seed, Dtype dtype) {
  Recipe recipe;
  recipe.n = n;
  recipe.mean = offset / sd;
  recipe.scale = sd;
  recipe.seed = seed;
  return make_row(recipe, dtype);
}

void add_range(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const double range : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 80.0, 100.0, 150.0, 200.0, 500.0, 1000.0})
    cells.push_back({"softmax_range", fmt::format("max - min {}", range), [=] {
                       std::vector<Result> all;
                       Random random(o.seed + 1000);
                       std::vector<double> unit(centre_n);
                       for (double& v : unit) v = random.uniform() - 0.5;
                       unit.front() = -0.5;
                       unit.back() = 0.5;
                       const Tag tag{"softmax_range", fmt::format("range_{}", range), "range", range};
                       for (const Precision& p : all_precisions()) {
                         std::vector<double> data;
                         for (const double v : unit) data.push_back(round_to(p.dtype, range * v));
                         append(all, softmax_of(tag, data, p.dtype, {p.arithmetic}, o.lanes, Ops::all));
                       }
                       return all;
                     }});
}

void add_offset(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const double offset : {-1e6, -1e4, -1000.0, -200.0, -110.0, -104.0, -95.0, -88.0, -20.0,  -10.0, -5.0, 0.0,
                              5.0,  8.0,  10.0,    20.0,   80.0,   88.0,   100.0, 200.0, 1000.0, 1e4,   1e6})
    cells.push_back({"softmax_offset", fmt::format("offset {}", offset), [=] {
                       std::vector<Result> all;
                       const Tag tag{"softmax_offset", fmt::format("offset_{}", offset), "offset", offset};
                       for (const Precision& p : all_precisions()) {
                         const std::vector<double> data = normal_logits(centre_n, 1, offset, o.seed + 1100, p.dtype);
                         append(all, softmax_of(tag, data, p.dtype, {p.arithmetic}, o.lanes, Ops::all));
                       }
                       return all;
                     }});
}

void add_width(std::vector<Cell>& cells, const StudyOptions& o) {
  for (int power = 4; power <= (o.quick ? 16 : 20); power += 2)
    for (const Precision& p : all_precisions()) {
      if (p.low_sums() && power > (o.quick ? 12 : 16)) continue;
      cells.push_back({"softmax_width", fmt::format("n 2^{} {}", power, to_string(p.dtype)), [=] {
                         const std::int64_t n = std::int64_t{1} << power;
                         const Tag tag{"softmax_width", fmt::format("n_{}", n), "n", static_cast<double>(n)};
                         const std::vector<double> data = normal_logits(n, 3, 0, o.seed + 1200, p.dtype);
                         return softmax_of(tag, data, p.dtype, {p.arithmetic}, o.lanes,
                                           power > 16 ? Ops::softmax_only : Ops::all);
                       }});
    }
}

/// Masks as attention makes them: -inf in whole stretches, so that lanes and parts see no finite element at all.
void add_masks(std::vector<Cell>& cells, const StudyOptions& o) {
  struct Mask {
    const char* name;
    bool (*keeps)(std::int64_t i, std::int64_t n);
  };
  static constexpr Mask masks[] = {
      {"causal_first_quarter", [](std::int64_t i, std::int64_t n) { return i < n / 4; }},
      {"last_eighth_only", [](std::int64_t i, std::int64_t n) { return i >= n - n / 8; }},
      {"one_in_the_middle", [](std::int64_t i, std::int64_t n) { return i == n / 2; }},
      {"one_eighth_masked", [](std::int64_t i, std::int64_t n) { return i < n / 8 || i >= n / 4; }},
      {"every_other", [](std::int64_t i, std::int64_t) { return i % 2 == 0; }},
      {"one_lane_only", [](std::int64_t i, std::int64_t) { return i % 256 == 3; }},
      {"all_masked", [](std::int64_t, std::int64_t) { return false; }}};
  for (const Mask& mask : masks)
    cells.push_back({"softmax_masked", mask.name, [=] {
                       std::vector<Result> all;
                       for (const Precision& p : all_precisions()) {
                         std::vector<double> data = normal_logits(centre_n, 3, 0, o.seed + 1300, p.dtype);
                         for (std::int64_t i = 0; i < centre_n; ++i)
                           if (!mask.keeps(i, centre_n)) data[static_cast<std::size_t>(i)] = minus_infinity;
                         append(all, softmax_of({"softmax_masked", mask.name, "mask", std::nullopt}, data, p.dtype,
                                                {p.arithmetic}, o.lanes, Ops::all));
                       }
                       return all;
                     }});
}

/// Equal logits below the overflow of exp whose sum overflows: every output of the unshifted form is 0.
void add_vanishing(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const double logit : {80.0, 84.0, 86.0, 88.0})
    cells.push_back({"softmax_vanishing", fmt::format("4096 logits of {}", logit), [=] {
                       std::vector<Result> all;
                       const std::vector<double> data(4096, logit);
                       const Tag tag{"softmax_vanishing", fmt::format("equal_{}", logit), "logit", logit};
                       for (const Precision& p : {Precision{Dtype::f32, Dtype::f32}, Precision{Dtype::bf16, Dtype::f32},
                                                  Precision{Dtype::f64, Dtype::f64}})
                         append(all, softmax_of(tag, data, p.dtype, {p.arithmetic}, o.lanes, Ops::all));
                       return all;
                     }});
}

/// Each exponential that the kernels offer, division and reciprocal, fused or not.
void add_exponentials(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const double sd : {1.0, 3.0, 10.0, 30.0})
    cells.push_back({"exponential", fmt::format("logits of sd {}", sd), [=] {
                       std::vector<Result> all;
                       for (const Precision& p : {Precision{Dtype::f32, Dtype::f32}, Precision{Dtype::f16, Dtype::f32},
                                                  Precision{Dtype::bf16, Dtype::f32}}) {
                         const std::vector<double> data = normal_logits(centre_n, sd, 0, o.seed + 1400, p.dtype);
                         for (const Exponential exponential : {Exponential::accurate, Exponential::fast})
                           for (const bool reciprocal : {false, true})
                             for (const bool fma : {false, true}) {
                               const ArithmeticChoice arithmetic{p.arithmetic, fma, reciprocal, exponential};
                               const Tag tag{"exponential",
                                             fmt::format("sd_{}_{}_{}_fma_{}", sd,
                                                         exponential == Exponential::fast ? "fast" : "accurate",
                                                         reciprocal ? "reciprocal" : "division", fma ? "on" : "off"),
                                             "sd", sd};
                               append(all, softmax_of(tag, data, p.dtype, arithmetic, o.lanes, Ops::softmax_only));
                             }
                       }
                       return all;
                     }});
}

/// Ascending logits make the online form rescale at every step.
void add_arrangements(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const Arrangement arrangement : {Arrangement::shuffled, Arrangement::ascending, Arrangement::descending})
    cells.push_back({"softmax_arrangement", to_string(arrangement), [=] {
                       std::vector<Result> all;
                       for (const Precision& p : all_precisions()) {
                         Recipe recipe;
                         recipe.n = 4096;
                         recipe.scale = 3;
                         recipe.arrangement = arrangement;
                         recipe.seed = o.seed + 1500;
                         append(all,
                                softmax_of({"softmax_arrangement", to_string(arrangement), "arrangement", std::nullopt},
                                           make_row(recipe, p.dtype), p.dtype, {p.arithmetic}, o.lanes, Ops::all));
                       }
                       return all;
                     }});
}

}  // namespace

std::vector<Cell> softmax_cells(const StudyOptions& o) {
  std::vector<Cell> cells;
  add_width(cells, o);
  add_range(cells, o);
  add_offset(cells, o);
  add_masks(cells, o);
  add_vanishing(cells, o);
  add_exponentials(cells, o);
  add_arrangements(cells, o);
  return cells;
}

}  // namespace rowtune::stability
