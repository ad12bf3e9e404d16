#pragma once
// The methods on the user's own rows: which are safe there, how many digits they lose, where they first fail.

#include <functional>
#include <string>
#include <vector>

#include "stability/comparisons.hpp"
#include "stability/data_file.hpp"

namespace rowtune::stability {

/// Whether a result is good enough to use: of the right kind and sign, and at least half of the digits of the format it
/// is in are right, that is relative error <= sqrt(u). A variance that is exactly 0 (constant row) must come out as 0
/// to half the digits of the row's size.
bool is_safe(const Result& result, double rms);

/// Decimal digits of the format that the error ate: log10(error / u), at least 0; inf when nothing is right.
double digits_lost(const Result& result);

/// One method over all rows of a file.
struct MethodOnData {
  std::string op, method, order;
  Dtype arithmetic = Dtype::f32;
  bool used_by_kernels = false;
  std::int64_t rows = 0, unsafe_rows = 0;
  std::int64_t first_unsafe_row = -1;
  std::string first_unsafe;  ///< what happened there, in words
  std::int64_t worst_row = -1;
  double worst_error = 0, worst_digits_lost = 0;
};

struct DataReport {
  std::string description;
  std::int64_t rows = 0, cols = 0;
  Dtype dtype = Dtype::f32;
  std::int64_t rows_with_nan = 0, rows_with_inf = 0, constant_rows = 0;
  std::int64_t first_nan_row = -1, first_inf_row = -1;
  double largest_kappa = 0;  ///< over rows that are not constant
  std::int64_t largest_kappa_row = -1;
  double largest = 0, smallest = 0, largest_range = 0;  ///< finite elements
  std::vector<MethodOnData> methods;
};

/// Rows stream through in order; memory does not depend on the file's size. `each_row(results)` gets all the results of
/// a row, rows in order (test_case is `row_N`, the note says whether it is safe and how many digits it lost);
/// `progress(done, total)` counts pieces of work, several a row.
DataReport study_data(const DataFile& file, int lanes, const std::function<void(const std::vector<Result>&)>& each_row,
                      const std::function<void(std::int64_t, std::int64_t)>& progress);

/// The verdict, a sentence a line.
std::vector<std::string> verdict(const DataReport& report);

}  // namespace rowtune::stability
