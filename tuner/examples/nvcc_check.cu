// Everything that a table's header can be asked for in one dtype, compiled as a user would with all warnings as errors.

#include "rowtune_dispatch.cuh"

template <rowtune::dispatch::Operation O, class T>
cudaError_t all_of(const rowtune::RowParams& p) {
  const cudaError_t error = rowtune::prepare<O, T>();
  return error != cudaSuccess ? error : rowtune::launch<O, T>(p);
}

cudaError_t call_everything(const rowtune::RowParams& p) {
  using rowtune::dispatch::Operation;
  using T = rowtune::DTYPE;
  cudaError_t error = all_of<Operation::softmax, T>(p);
  if (error == cudaSuccess) error = all_of<Operation::log_softmax, T>(p);
  if (error == cudaSuccess) error = all_of<Operation::layernorm, T>(p);
  if (error == cudaSuccess) error = all_of<Operation::rmsnorm, T>(p);
  if (error == cudaSuccess) error = all_of<Operation::fused_add_rmsnorm, T>(p);
  if (error == cudaSuccess) error = all_of<Operation::argmax_logsumexp, T>(p);
  return error;
}
