#pragma once
// What the kernels of oracle.cuh are given: shared with the host that launches them.

namespace rowtune {

/// A tensor of a workload inside its allocation: `bytes` from `base`, element (0, 0) at `first` bytes.
struct TensorPlace {
  void* base;
  long long bytes;
  long long first;
  long long rows, cols, ld;
};

struct OracleResult {
  unsigned long long wrong;        ///< elements outside their tolerance, or of another kind of non-finite
  unsigned long long first_wrong;  ///< row * cols + col of the least of them
  unsigned long long guards;       ///< bytes outside the rows that changed
  unsigned max_error_ulp;          ///< bits of a float, over the finite elements
};

struct OracleArgs {
  TensorPlace output;
  TensorPlace residual_out;  ///< base is null unless the operation writes one
  long long rows, cols;
  double eps;
  double depth;
  double weight_offset;
  int has_weight, has_bias, adds_residual;
  OracleResult* result;
};

}  // namespace rowtune
