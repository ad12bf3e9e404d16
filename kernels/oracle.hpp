#pragma once
// The fp64 oracle on the host: what every element of an operation must be, and how far a kernel may lie from it
// (rowtune/tolerance.cuh). Itself checked against Eigen in long double by the tests. The CUDA device has the same
// oracle as a kernel, checked against this one.

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/words.hpp"

namespace rowtune {

/// Reads and writes elements of a tensor as double, exactly.
double load_element(Dtype dtype, const void* base, std::int64_t index);
/// Rounds to nearest even (keeps NaN and inf).
void store_element(Dtype dtype, void* base, std::int64_t index, double value);

/// One row of any operation in fp64. `input` are the values the kernel saw, already rounded to the dtype;
/// fused_add_rmsnorm: `residual` too, and `new_residual` (optional) receives the rounded sums.
/// weight and bias may be null.
struct RowReference {
  std::vector<double> output;        ///< unrounded; argmax_logsumexp: index and log-sum-exp
  std::vector<double> new_residual;  ///< fused_add_rmsnorm only; rounded to the dtype, exact
  double spread = 0;                 ///< as tolerance_of wants it
};
RowReference reference_row(const Workload& workload, const std::vector<double>& input,
                           const std::vector<double>& residual, const double* weight, const double* bias);

/// Checks one element: true when right. In any case *error_ulp receives the error in ulps of the dtype at error_size
/// (NaN when the kinds of non-finite values differ). h: depth of the summation of the config.
bool check_element(const Workload& workload, double got, double reference, double spread, double weight, double h,
                   double* error_ulp);

/// Element `col` of a row of the output, which need not be of the inputs' type (output_form); and its check.
double load_output(const Workload& workload, const void* row, std::int64_t col);
bool check_output(const Workload& workload, std::int64_t col, double got, double reference, double spread,
                  double weight, double h, double* error_ulp);

}  // namespace rowtune
