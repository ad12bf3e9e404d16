// One operation and dtype of a dispatch table behind a C interface: rowtune_OPERATION_DTYPE and its two helpers.
// Compiled once for each, linked into one shared library (build.sh).

#include "library.h"

#include "rowtune_dispatch.cuh"

#define JOINED(a, b, c, d) a##b##_##c##d
#define NAME(prefix, operation, dtype, suffix) JOINED(prefix, operation, dtype, suffix)

namespace {

using T = rowtune::DTYPE;
constexpr auto op = rowtune::dispatch::Operation::OPERATION;

rowtune::RowParams params_of(const rowtune_call& c) {
  rowtune::RowParams p;
  p.input = c.input, p.residual = c.residual, p.weight = c.weight, p.bias = c.bias;
  p.output = c.output, p.residual_out = c.residual_out;
  p.rows = c.rows, p.cols = c.cols;
  p.input_stride = c.input_stride, p.residual_stride = c.residual_stride;
  p.output_stride = c.output_stride, p.residual_out_stride = c.residual_out_stride;
  p.eps = c.eps;
  p.weight_plus_one = c.weight_plus_one != 0;
  p.workspace = c.workspace, p.workspace_bytes = c.workspace_bytes;
  p.stream = static_cast<cudaStream_t>(c.stream);
  return p;
}

}  // namespace

extern "C" {

int NAME(rowtune_, OPERATION, DTYPE, )(const rowtune_call* call, int* match_kind) {
  rowtune::RowParams p = params_of(*call);
  rowtune::Match match;
  p.match = &match;
  const cudaError_t error = rowtune::launch<op, T>(p);
  if (match_kind != nullptr) *match_kind = static_cast<int>(match.kind);
  return static_cast<int>(error);
}

size_t NAME(rowtune_, OPERATION, DTYPE, _workspace)(const rowtune_call* call) {
  return rowtune::workspace_bytes<op, T>(params_of(*call));
}

int NAME(rowtune_, OPERATION, DTYPE, _prepare)(void) { return static_cast<int>(rowtune::prepare<op, T>()); }

}  // extern "C"
