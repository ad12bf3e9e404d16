#pragma once
// Builds a call of an operation on hostile values, with canaries around and between the rows, and checks everything
// that the specification says of the result.

#include <functional>
#include <string>
#include <vector>

#include "kernels/tests/spec_runner.hpp"

namespace rowtune::spec {

/// Values of one row. Rows of one tensor differ, so that a row that leaks into its neighbour is seen.
enum class Values {
  normal,    ///< the data that tuning uses: nearly normal, spikes at the ends and in the middle
  constant,  ///< 3.5 everywhere
  zeros,
  small_integers,  ///< -4 .. 4: sums are exact
  far_from_zero,   ///< 2000 + normal (1000 for f16): cancels in a variance
  wide,            ///< softmax: over the dtype's range; norms: as large as squares in fp32 allow
  tiny,            ///< subnormal numbers of the dtype among zeros
  one_outlier,     ///< normal, with one element 1000 times as large
  descending,      ///< every element raises no maximum; ascending: every one does
  ascending,
  all_minus_inf,
  one_finite,      ///< -inf but for one element
  minus_inf_head,  ///< the first third is -inf
  minus_inf_tail,
  minus_inf_comb,  ///< every second element is -inf
  one_plus_inf,
  one_nan,
  nan_among_minus_inf,
  nan_behind_minus_inf,  ///< the first third is -inf but for a NaN: a part of the row knows of no number
  near_eps               ///< variances of the size of eps
};
inline constexpr int values_count = static_cast<int>(Values::near_eps) + 1;
std::string to_string(Values values);

/// Whether the config's method promises anything of such a row: not so for the forms kept to warn of (softmax without
/// the maximum, one-pass variance) where they are known to fail.
bool promised(const Workload& workload, const Config& config, Values values);

/// Value at a column before rounding to the dtype.
double value_at(Values values, Dtype dtype, bool norm, std::int64_t row, std::int64_t col, std::int64_t cols);

struct Layout {
  std::int64_t weight_offset_elements = 0;  ///< of weight and bias behind an aligned address
  bool shared_matrix = false;               ///< residual lies beside hidden: column views of one matrix
  /// Each further tensor (input, residual, output, residual_out) starts this many elements further behind an aligned
  /// address than the one before it.
  std::int64_t apart = 0;
};

/// Buffers of the workload: row r of the input holds rows[r % rows.size()]. Everything that is no element holds a
/// canary, outputs hold poison.
Call make_call(const Workload& workload, const Config& config, const std::vector<Values>& rows,
               const Layout& layout = {});
/// The same, the input being a function of row and column.
using Fill = std::function<double(std::int64_t row, std::int64_t col)>;
Call make_call(const Workload& workload, const Config& config, const Fill& fill, const Layout& layout = {});

/// Runs the call and checks: every element against the fp64 reference within the derived tolerance, canaries,
/// untouched inputs; and that a second run in another order gives the same bits. Empty when all is right.
std::string run_and_check(const Call& call, std::uint64_t order, bool twice = true);

/// The output as doubles, row after row.
std::vector<double> output_of(const Call& call);
/// Tolerance of each element of the output, as run_and_check applies it.
std::vector<double> tolerances_of(const Call& before);

}  // namespace rowtune::spec
