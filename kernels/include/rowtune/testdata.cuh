#pragma once
// The data that kernels are verified and timed on, as a function of position, so that host and device make the same
// values without a copy. Nearly normal, with spikes where kernels go wrong: first, middle and last columns.
// C++17, no standard library.

#include "rowtune/algebra.cuh"

namespace rowtune {

ROWTUNE_FUNCTION unsigned long long mix_bits(unsigned long long x) {  // the finaliser of splitmix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Sum of four uniforms, centred, scaled to unit variance: within +-3.47. Exact in float.
ROWTUNE_FUNCTION float nearly_normal(unsigned long long bits) {
  const int sum = static_cast<int>((bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48));
  return static_cast<float>(sum - 131070) * (1.0f / 37837.0f);
}

/// Which tensor a value belongs to: tensors of one workload must differ.
enum TestTensor { test_input = 1, test_residual = 2, test_weight = 3, test_bias = 4 };

/// Value at (row, col) of a matrix of `cols` columns, before rounding to the dtype. Weights and biases use row 0.
ROWTUNE_FUNCTION float test_value(int tensor, long long row, long long col, long long cols) {
  const unsigned long long key = mix_bits(static_cast<unsigned long long>(row) * 0x2545f4914f6cdd1dULL + tensor);
  const float normal = nearly_normal(mix_bits(key + static_cast<unsigned long long>(col)));
  if (tensor == test_weight) return 1.0f + 0.125f * normal;
  if (tensor == test_bias) return 0.25f * normal;
  const long long spike = (row & 3) == 0   ? cols - 1
                          : (row & 3) == 1 ? 0
                          : (row & 3) == 2 ? cols / 2
                                           : cols - 1 - cols / 3;
  return col == spike ? 6.0f + normal : 0.5f + normal;
}

}  // namespace rowtune
