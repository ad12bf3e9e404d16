#pragma once
// Kernels that fill, poison and check the buffers of a workload on the GPU. The check is the fp64 oracle: it makes the
// inputs again from their positions (testdata.cuh), so in-place operations need no copy, computes the unrounded
// result in double, and compares every element within tolerance.cuh. Not part of what is shipped.

#include "rowtune/oracle_args.cuh"
#include "rowtune/rows.cuh"
#include "rowtune/testdata.cuh"
#include "rowtune/tolerance.cuh"

namespace rowtune {

enum OracleOperation {
  oracle_copy,
  oracle_softmax,
  oracle_log_softmax,
  oracle_layernorm,
  oracle_rmsnorm,
  oracle_argmax_logsumexp
};

template <class T>
ROWTUNE_DEVICE double rounded_test_value(int tensor, i64 row, i64 col, i64 cols) {
  const float x[1] = {test_value(tensor, row, col, cols)};
  return Vec<T, 1>::pack(x).get(0);
}

/// The tensor of slot blockIdx.y: slots lie `t.bytes` apart.
ROWTUNE_DEVICE TensorPlace place_of_slot(const TensorPlace& t) {
  TensorPlace mine = t;
  mine.base = static_cast<char*>(t.base) + static_cast<i64>(blockIdx.y) * t.bytes;
  return mine;
}

/// Calls f(index, row, col, inside) for each element of the allocation; row and col mean something inside only.
template <class T, class F>
ROWTUNE_DEVICE void each_place(const TensorPlace& t, F f) {
  const i64 count = t.bytes / T::bytes;
  for (i64 i = static_cast<i64>(block_index()) * 256 + thread_index(); i < count;
       i += static_cast<i64>(grid_blocks()) * 256) {
    const i64 place = i - t.first / T::bytes;
    const i64 row = place >= 0 && t.ld > 0 ? place / t.ld : -1;
    const i64 col = place - row * t.ld;
    f(i, row, col, row >= 0 && row < t.rows && col < t.cols);
  }
}

/// The guard pattern of bytes outside the rows.
template <class T>
ROWTUNE_DEVICE auto guard_pattern() {
  return static_cast<typename Vec<T, 1>::Words>(0xc5c5c5c5u);
}

/// Every byte of the allocations: rows get test values, or 0xff bytes (a NaN in every dtype) when `tensor` is 0; the
/// rest gets the guard pattern.
template <class T>
ROWTUNE_DEVICE void fill_tensor(const TensorPlace& all, int tensor) {
  using Scalar = typename Vec<T, 1>::Words;
  const TensorPlace t = place_of_slot(all);
  each_place<T>(t, [&](i64 i, i64 row, i64 col, bool inside) {
    Scalar bits = guard_pattern<T>();
    if (inside) {
      const float x[1] = {tensor == 0 ? 0.0f : test_value(tensor, row, col, t.cols)};
      bits = tensor == 0 ? static_cast<Scalar>(0xffffffffu) : Vec<T, 1>::pack(x).words;
    }
    static_cast<Scalar*>(t.base)[i] = bits;
  });
}

/// Bytes outside the rows that no longer hold the guard.
template <class T>
ROWTUNE_DEVICE void check_guards(const TensorPlace& all, OracleResult* result) {
  const TensorPlace t = place_of_slot(all);
  each_place<T>(t, [&](i64 i, i64, i64, bool inside) {
    if (!inside && static_cast<const typename Vec<T, 1>::Words*>(t.base)[i] != guard_pattern<T>())
      atomicAdd(&result->guards, static_cast<unsigned long long>(T::bytes));
  });
}

/// Reads a buffer that was just written, so that its lines in the L2 are clean.
ROWTUNE_DEVICE void flush_by_reading(const Words4* p, i64 count, unsigned* never) {
  unsigned sum = 0;
  for (i64 i = static_cast<i64>(block_index()) * 256 + thread_index(); i < count;
       i += static_cast<i64>(grid_blocks()) * 256) {
    const Words4 w = global_load<keep>(p + i);
    sum += w.w[0] ^ w.w[1] ^ w.w[2] ^ w.w[3];
  }
  if (sum == 0x9e3779b9u) *never = sum;
}

/// Reductions of a block of 256 threads in double.
template <class Merge>
ROWTUNE_DEVICE double block_reduce(double x, Merge merge) {
  __shared__ double parts[256];
  block_barrier();
  parts[thread_index()] = x;
  block_barrier();
  for (int d = 128; d > 0; d /= 2) {
    if (thread_index() < d) parts[thread_index()] = merge(parts[thread_index()], parts[thread_index() + d]);
    block_barrier();
  }
  return parts[0];
}

template <class T>
ROWTUNE_DEVICE double oracle_input(const OracleArgs& a, i64 row, i64 col) {
  double x = rounded_test_value<T>(test_input, row, col, a.cols);
  if (a.adds_residual) {
    const float sum[1] = {static_cast<float>(x) +
                          static_cast<float>(rounded_test_value<T>(test_residual, row, col, a.cols))};
    x = Vec<T, 1>::pack(sum).get(0);
  }
  return x;
}

template <class T>
ROWTUNE_DEVICE double stored_value(const TensorPlace& t, i64 row, i64 col) {
  Vec<T, 1> v;
  v.words = *reinterpret_cast<const typename Vec<T, 1>::Words*>(static_cast<const char*>(t.base) + t.first +
                                                                (row * t.ld + col) * T::bytes);
  return v.get(0);
}

/// argmax_logsumexp: rows x 2 words, index and log-sum-exp. The test data is finite.
template <class T>
ROWTUNE_DEVICE void check_row_results(const OracleArgs& a) {
  const auto add = [](double x, double y) { return x + y; };
  const auto most = [](double x, double y) { return x > y ? x : y; };
  double worst_ulp = 0;
  for (i64 row = block_index(); row < a.rows; row += grid_blocks()) {
    double high = -1e300, low = -1e300;
    for (i64 c = thread_index(); c < a.cols; c += 256) {
      const double x = oracle_input<T>(a, row, c);
      high = most(high, x);
      low = most(low, -x);
    }
    const double max = block_reduce(high, most);
    const double spread = max + block_reduce(low, most);
    double sum = 0, first = -1e300;  // minus the first index, so that the greatest is wanted
    for (i64 c = thread_index(); c < a.cols; c += 256) {
      const double x = oracle_input<T>(a, row, c);
      sum += exp(x - max);
      if (x == max) first = most(first, -static_cast<double>(c));
    }
    const double want = max + log(block_reduce(sum, add));
    const double index = -block_reduce(first, most);
    if (thread_index() == 0) {
      const unsigned* got =
          reinterpret_cast<const unsigned*>(static_cast<const char*>(a.output.base) + a.output.first) + row * 2;
      const double value = float_of(got[1]);
      const double error = value > want ? value - want : want - value;
      const double ulps = error / ulp_at(code_f32, want);
      if (ulps > worst_ulp) worst_ulp = ulps;
      const bool near = error <= tolerance_of(tolerance_log_softmax, code_f32, want, spread, 1, a.depth);
      if (!near || static_cast<int>(got[0]) != static_cast<int>(index)) {
        atomicAdd(&a.result->wrong, 1ULL);
        atomicMin(&a.result->first_wrong, static_cast<unsigned long long>(row * a.cols));
      }
    }
  }
  worst_ulp = block_reduce(worst_ulp, most);
  if (thread_index() == 0) atomicMax(&a.result->max_error_ulp, bits_of(static_cast<float>(worst_ulp)));
}

/// One block of 256 threads per row.
template <class T, int Op>
ROWTUNE_DEVICE void check_rows(const OracleArgs& a) {
  if constexpr (Op == oracle_argmax_logsumexp) {
    check_row_results<T>(a);
    return;
  }
  constexpr int dtype = T::bytes == 4 ? code_f32 : minus_infinity_bits<T>() == 0xfc00u ? code_f16 : code_bf16;
  const auto add = [](double x, double y) { return x + y; };
  const auto most = [](double x, double y) { return x > y ? x : y; };
  double worst_ulp = 0;
  for (i64 row = block_index(); row < a.rows; row += grid_blocks()) {
    double mean = 0, rstd = 1, max = 0, log_sum = 0, inverse = 1, spread = 0;
    if constexpr (Op == oracle_softmax || Op == oracle_log_softmax) {
      double high = -1e300, low = -1e300;
      for (i64 c = thread_index(); c < a.cols; c += 256) {
        const double x = oracle_input<T>(a, row, c);
        high = most(high, x);
        low = most(low, -x);
      }
      max = block_reduce(high, most);
      spread = max + block_reduce(low, most);
      double sum = 0;
      for (i64 c = thread_index(); c < a.cols; c += 256) sum += exp(oracle_input<T>(a, row, c) - max);
      sum = block_reduce(sum, add);
      inverse = 1 / sum;
      log_sum = log(sum);
    } else if constexpr (Op == oracle_layernorm || Op == oracle_rmsnorm) {
      double sum = 0, squares = 0;
      for (i64 c = thread_index(); c < a.cols; c += 256) {
        const double x = oracle_input<T>(a, row, c);
        sum += x;
        squares += x * x;
      }
      sum = block_reduce(sum, add);
      squares = block_reduce(squares, add) / static_cast<double>(a.cols);
      double variance = squares;
      if constexpr (Op == oracle_layernorm) {
        mean = sum / static_cast<double>(a.cols);
        double m2 = 0;
        for (i64 c = thread_index(); c < a.cols; c += 256) {
          const double d = oracle_input<T>(a, row, c) - mean;
          m2 += d * d;
        }
        variance = block_reduce(m2, add) / static_cast<double>(a.cols);
      }
      rstd = 1 / sqrt(variance + a.eps);
      spread = sqrt(squares) * rstd;
    }
    for (i64 c = thread_index(); c < a.cols; c += 256) {
      const double x = oracle_input<T>(a, row, c);
      double want = x, scale = 1;
      if constexpr (Op == oracle_softmax) want = exp(x - max) * inverse;
      if constexpr (Op == oracle_log_softmax) want = (x - max) - log_sum;
      if constexpr (Op == oracle_layernorm || Op == oracle_rmsnorm) {
        want = (x - mean) * rstd;
        if (a.has_weight) {
          scale = rounded_test_value<T>(test_weight, 0, c, a.cols) + a.weight_offset;
          want *= scale;
        }
        if (a.has_bias) want += rounded_test_value<T>(test_bias, 0, c, a.cols);
        scale = scale < 0 ? -scale : scale;
      }
      constexpr int kind = Op == oracle_copy          ? tolerance_exact
                           : Op == oracle_softmax     ? tolerance_softmax
                           : Op == oracle_log_softmax ? tolerance_log_softmax
                                                      : tolerance_norm;
      const double got = stored_value<T>(a.output, row, c);
      const double error = got > want ? got - want : want - got;
      bool right = error <= tolerance_of(kind, dtype, want, spread, scale, a.depth);
      if (a.residual_out.base && !(stored_value<T>(a.residual_out, row, c) == x)) right = false;
      const double ulps = error / ulp_at(dtype, error_size(kind, want, scale));
      if (ulps > worst_ulp) worst_ulp = ulps;
      if (!right) {
        atomicAdd(&a.result->wrong, 1ULL);
        atomicMin(&a.result->first_wrong, static_cast<unsigned long long>(row * a.cols + c));
      }
    }
  }
  worst_ulp = block_reduce(worst_ulp, most);
  if (thread_index() == 0) atomicMax(&a.result->max_error_ulp, bits_of(static_cast<float>(worst_ulp)));
}

}  // namespace rowtune
