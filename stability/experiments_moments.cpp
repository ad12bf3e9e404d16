// Variance and the norms: one factor at a time around stated centres.

#include <fmt/format.h>

#include <cmath>

#include "stability/comparisons.hpp"
#include "stability/recipes.hpp"
#include "stability/study.hpp"

namespace rowtune::stability {
namespace {

/// The centre: 4096 normal numbers with mean 100 and standard deviation 1.
constexpr std::int64_t centre_n = 4096;
constexpr double centre_mean = 100;

bool all_finite(const std::vector<double>& values) {
  for (const double v : values)
    if (!std::isfinite(v)) return false;
  return true;
}

/// All methods in one precision on a recipe's row; data that does not fit the dtype gives nothing to measure.
std::vector<Result> variance_of(const Tag& tag, const Recipe& recipe, const Precision& p,
                                const std::vector<MomentsChoice>& choices) {
  const std::vector<double> data = make_row(recipe, p.dtype);
  if (!all_finite(data)) return {};
  const MemoryRow row(data);
  return compare_variance(tag, p.dtype, {p.arithmetic}, row, reference_moments(row), choices);
}

/// The largest row that is worth the time in a precision: emulated sums are slow, and are wrong long before.
std::int64_t longest(const Precision& p, bool quick) {
  if (p.low_sums()) return quick ? 1 << 12 : 1 << 16;
  if (p.dtype == Dtype::f32) return quick ? 1 << 18 : 1 << 24;
  return quick ? 1 << 16 : 1 << 20;
}

void add_condition(std::vector<Cell>& cells, const StudyOptions& o) {
  for (int half_decade = 0; half_decade <= 16; half_decade += o.quick ? 2 : 1) {
    const double mean = half_decade == 0 ? 0 : std::pow(10.0, half_decade / 2.0);
    cells.push_back({"condition", fmt::format("mean/sd {:.3g}", mean), [=] {
                       std::vector<Result> all;
                       const Tag tag{"condition", fmt::format("mean_{:.3g}", mean), "mean_over_sd", mean};
                       Recipe recipe;
                       recipe.n = centre_n;
                       recipe.mean = mean;
                       recipe.seed = o.seed + static_cast<std::uint64_t>(half_decade);
                       for (const Precision& p : all_precisions())
                         append(all, variance_of(tag, recipe, p, all_moments(o.lanes)));
                       return all;
                     }});
  }
}

void add_length(std::vector<Cell>& cells, const StudyOptions& o) {
  for (int power = 4; power <= (o.quick ? 18 : 24); power += 2)
    for (const Precision& p : all_precisions()) {
      const std::int64_t n = std::int64_t{1} << power;
      if (n > longest(p, o.quick)) continue;
      cells.push_back({"length", fmt::format("n 2^{} {}", power, to_string(p.dtype)), [=] {
                         Recipe recipe;
                         recipe.n = n;
                         recipe.mean = centre_mean;
                         recipe.seed = o.seed + 100 + static_cast<std::uint64_t>(power);
                         const Tag tag{"length", fmt::format("n_{}", n), "n", static_cast<double>(n)};
                         return variance_of(tag, recipe, p, all_moments(o.lanes));
                       }});
    }
}

void add_magnitude(std::vector<Cell>& cells, const StudyOptions& o) {
  // f32 squares leave the range near 1e19 and 1e-19, f64 near 1e154; f16 holds 1e-7 to 6e4.
  const std::vector<double> scales = {1e-160, 1e-150, 1e-100, 1e-30, 1e-24, 1e-21, 1e-18, 1e-12, 1e-6,
                                      1e-4,   1e-2,   1,      10,    100,   1e3,   1e6,   1e12,  1e15,
                                      1e17,   1e18,   1e19,   1e30,  1e100, 1e150, 1e155};
  for (std::size_t i = 0; i < scales.size(); i += o.quick ? 2 : 1)
    cells.push_back({"magnitude", fmt::format("scale {:.0e}", scales[i]), [=, scale = scales[i]] {
                       std::vector<Result> all;
                       Recipe recipe;
                       recipe.n = centre_n;
                       recipe.mean = 10;
                       recipe.scale = scale;
                       recipe.seed = o.seed + 200;
                       const Tag tag{"magnitude", fmt::format("scale_{:.0e}", scale), "scale", scale};
                       for (const Precision& p : all_precisions())
                         append(all, variance_of(tag, recipe, p, all_moments(o.lanes)));
                       return all;
                     }});
}

void add_arrangement(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const Arrangement arrangement : {Arrangement::shuffled, Arrangement::ascending, Arrangement::descending,
                                        Arrangement::outlier_first, Arrangement::outlier_last})
    cells.push_back({"arrangement", to_string(arrangement), [=] {
                       std::vector<Result> all;
                       Recipe recipe;
                       recipe.n = o.quick ? 1 << 14 : 1 << 16;
                       recipe.mean = centre_mean;
                       recipe.arrangement = arrangement;
                       recipe.seed = o.seed + 300;
                       const Tag tag{"arrangement", to_string(arrangement), "arrangement", std::nullopt};
                       for (const Precision& p : all_precisions())
                         if (!p.low_sums()) append(all, variance_of(tag, recipe, p, all_moments(o.lanes)));
                       return all;
                     }});
}

void add_distribution(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const Distribution distribution : {Distribution::normal, Distribution::lognormal, Distribution::constant,
                                          Distribution::alternating, Distribution::activations})
    for (const double mean : {0.0, centre_mean})
      cells.push_back({"distribution", fmt::format("{} mean {}", to_string(distribution), mean), [=] {
                         std::vector<Result> all;
                         Recipe recipe;
                         recipe.n = centre_n;
                         recipe.mean = mean;
                         recipe.distribution = distribution;
                         recipe.seed = o.seed + 400;
                         const Tag tag{"distribution", fmt::format("{}_mean_{}", to_string(distribution), mean),
                                       "distribution", std::nullopt};
                         for (const Precision& p : all_precisions())
                           append(all, variance_of(tag, recipe, p, all_moments(o.lanes)));
                         return all;
                       }});
}

/// The order of merit on a long row, shuffled and sorted.
void add_merit(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const double mean : {1e4, 1e6})
    for (const Arrangement arrangement : {Arrangement::shuffled, Arrangement::ascending})
      cells.push_back(
          {"merit", fmt::format("n 2^20 mean/sd {:.0e} {}", mean, to_string(arrangement)), [=] {
             Recipe recipe;
             recipe.n = 1 << 20;
             recipe.mean = mean;
             recipe.arrangement = arrangement;
             recipe.seed = o.seed + 500;
             const Tag tag{"merit", fmt::format("mean_{:.0e}_{}", mean, to_string(arrangement)), "mean_over_sd", mean};
             return variance_of(tag, recipe, {Dtype::f32, Dtype::f32}, all_moments(o.lanes));
           }});
}

/// The kernels' own orders: rows as long as theirs, lanes from a warp to a cluster of blocks.
void add_kernel_rows(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const std::int64_t n : {std::int64_t{4096}, std::int64_t{16384}, std::int64_t{131072}, std::int64_t{1048576}}) {
    if (o.quick && n > 131072) continue;
    for (const double mean : {1.0, 100.0, 1e4, 1e6})
      cells.push_back(
          {"kernel_rows", fmt::format("n {} mean/sd {}", n, mean), [=] {
             std::vector<Result> all;
             Recipe recipe;
             recipe.n = n;
             recipe.mean = mean;
             recipe.seed = o.seed + 600;
             for (const int lanes : {32, 256, 1024, 8192}) {
               std::vector<MomentsChoice> choices;
               const Summation summation{Order::lanes, lanes};
               for (const MomentsMethod method : {MomentsMethod::one_pass, MomentsMethod::two_pass,
                                                  MomentsMethod::corrected_two_pass, MomentsMethod::welford})
                 choices.push_back({method, summation});
               const Tag tag{"kernel_rows", fmt::format("n_{}_mean_{}", n, mean), "lanes", static_cast<double>(lanes)};
               append(all, variance_of(tag, recipe, {Dtype::f32, Dtype::f32}, choices));
             }
             return all;
           }});
  }
}

void add_instructions(std::vector<Cell>& cells, const StudyOptions& o) {
  for (const bool fma : {false, true})
    for (const bool reciprocal : {false, true})
      cells.push_back(
          {"instructions", fmt::format("fma {} {}", fma ? "on" : "off", reciprocal ? "reciprocal" : "division"), [=] {
             std::vector<Result> all;
             for (const double mean : {1.0, 1000.0})
               for (const Dtype type : {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16}) {
                 Recipe recipe;
                 recipe.n = type == Dtype::f32 || type == Dtype::f64 ? centre_n : 128;
                 recipe.mean = mean;
                 recipe.seed = o.seed + 700;
                 const std::vector<double> data = make_row(recipe, type);
                 const MemoryRow row(data);
                 const Tag tag{
                     "instructions",
                     fmt::format("mean_{}_fma_{}_{}", mean, fma ? "on" : "off", reciprocal ? "reciprocal" : "division"),
                     "mean_over_sd", mean};
                 append(all, compare_variance(tag, type, {type, fma, reciprocal}, row, reference_moments(row),
                                              all_moments(o.lanes)));
               }
             return all;
           }});
}

}  // namespace

std::vector<Cell> moments_cells(const StudyOptions& o) {
  std::vector<Cell> cells;
  add_length(cells, o);  // the longest cells first: they decide when the study ends
  add_merit(cells, o);
  add_condition(cells, o);
  add_magnitude(cells, o);
  add_arrangement(cells, o);
  add_distribution(cells, o);
  add_kernel_rows(cells, o);
  add_instructions(cells, o);
  return cells;
}

std::vector<Cell> norm_cells(const StudyOptions& o) {
  std::vector<Cell> cells;
  for (const double mean : {0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5})
    cells.push_back({"norm_output", fmt::format("mean/sd {:.0e}", mean), [=] {
                       std::vector<Result> all;
                       for (const Precision& p : all_precisions()) {
                         Recipe recipe;
                         recipe.n = p.low_sums() ? 1024 : centre_n;
                         recipe.mean = mean;
                         recipe.seed = o.seed + 800;
                         const std::vector<double> data = make_row(recipe, p.dtype);
                         if (!all_finite(data)) continue;
                         const MemoryRow row(data);
                         const MomentsReference reference = reference_moments(row);
                         const Tag tag{"norm_output", fmt::format("mean_{:.0e}", mean), "mean_over_sd", mean};
                         append(all, compare_norm(tag, Operation::layernorm, p.dtype, {p.arithmetic}, 1e-5, row,
                                                  reference, all_moments(o.lanes)));
                         append(all, compare_norm(tag, Operation::rmsnorm, p.dtype, {p.arithmetic}, 1e-6, row,
                                                  reference, all_moments(o.lanes)));
                       }
                       return all;
                     }});
  return cells;
}

}  // namespace rowtune::stability
