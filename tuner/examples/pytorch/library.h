/* The C interface of a dispatch table: what rowtune::RowParams has, for callers that know no C++ (ctypes, cffi...).
   Each operation and dtype has
     int    rowtune_softmax_bf16(const struct rowtune_call*, int* match_kind);   a cudaError_t; match_kind may be null:
            0 exact, 1 near, 2 out of range, 3 other device, 4 not tuned (2 to 4: the base kernel was launched)
     size_t rowtune_softmax_bf16_workspace(const struct rowtune_call*);          bytes; zero them once when allocated
     int    rowtune_softmax_bf16_prepare(void);                                  loads the kernels: before a capture
   and so on for the others. Strides are in elements; 0 is cols. */
#ifndef ROWTUNE_LIBRARY_H
#define ROWTUNE_LIBRARY_H

#include <stddef.h>

struct rowtune_call {
  const void *input, *residual, *weight, *bias;
  void *output, *residual_out;
  long long rows, cols;
  long long input_stride, residual_stride, output_stride, residual_out_stride;
  float eps;
  int weight_plus_one;
  void* workspace;
  size_t workspace_bytes;
  void* stream; /* cudaStream_t */
};

#endif
