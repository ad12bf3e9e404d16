#pragma once
// How far an output may lie from the unrounded fp64 reference: half an ulp of the dtype (the one rounding at the
// store) plus the derived error of the fp32 arithmetic. Shared by the oracle on the device and the one on the host.
//
// u = 2^-24, h = depth of the summation, C = 4. softmax: a term's exponent carries (range of the row) u, capped at 100
// since smaller terms vanish; the norms: their condition is rms * rstd. Derivations: Blanchard, Higham & Higham 2021
// (softmax); Chan, Golub & LeVeque 1983 (variance).

#include "rowtune/algebra.cuh"

namespace rowtune {

enum DtypeCode { code_f32 = 0, code_f16 = 1, code_bf16 = 2 };

/// Distance between neighbouring numbers of the dtype at |v| (in the subnormal range: the smallest subnormal).
ROWTUNE_FUNCTION double ulp_at(int dtype, double v) {
  const int digits = dtype == code_f32 ? 24 : dtype == code_f16 ? 11 : 8;
  double magnitude = v < 0 ? -v : v;
  if (!(magnitude <= 1e300)) magnitude = 1e300;
  double power = dtype == code_f16 ? 6.103515625e-05 : 1.1754943508222875e-38;  // the smallest normal number
  // The largest power of two at most |v|, by steps of 2^128, 2^64, ... 2.
  const double steps[8] = {
      340282366920938463463374607431768211456.0, 18446744073709551616.0, 4294967296.0, 65536.0, 256.0, 16.0, 4.0, 2.0};
  for (int i = 0; i < 8; ++i)
    if (magnitude >= power * steps[i]) power *= steps[i];
  double ulp = power;
  for (int i = 1; i < digits; ++i) ulp *= 0.5;
  return ulp;
}

enum ToleranceKind { tolerance_exact = 0, tolerance_softmax = 1, tolerance_log_softmax = 2, tolerance_norm = 3 };

/// The size whose ulp errors are counted in: |reference|, but at least 1 for log_softmax and `scale` for the norms:
/// their outputs pass through 0, and their errors do not.
ROWTUNE_FUNCTION double error_size(int kind, double reference, double scale) {
  const double size = reference < 0 ? -reference : reference;
  const double least = kind == tolerance_log_softmax ? 1 : kind == tolerance_norm ? scale : 0;
  return size < least ? least : size;
}

/// spread: softmax, log_softmax: max - min of the finite inputs of the row; norms: rms * rstd of the row.
/// scale: norms: |weight|; otherwise ignored.
ROWTUNE_FUNCTION double tolerance_of(int kind, int dtype, double reference, double spread, double scale, double h) {
  if (kind == tolerance_exact) return 0;
  const double u = 5.9604644775390625e-08;
  const double size = reference < 0 ? -reference : reference;
  const double range = spread < 100 ? spread : 100;
  double error = 0;
  if (kind == tolerance_softmax) error = 4 * u * (h + range) * size;
  if (kind == tolerance_log_softmax) error = 4 * u * (h + range) * error_size(kind, reference, scale);
  if (kind == tolerance_norm) error = 4 * u * (1 + h * spread) * error_size(kind, reference, scale);
  // 2^-126: results below it may be flushed to zero by the fast exponential.
  return error + 0.5 * ulp_at(dtype, reference) + 1.1754943508222875e-38;
}

}  // namespace rowtune
