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

// The base holds what a warp per row needs for these columns, as the base config that tuning measures does.
template <class T>
constexpr bool base_holds(int vectors, bool ragged, long long cols) {
  using Base = rowtune::dispatch::Base<rowtune::dispatch::Operation::softmax, T>;
  const int row = ragged ? T::bytes : 16;  // what divides the row starts
  const rowtune::dispatch::Question question{4097, cols, T::bytes, row, 16};
  const rowtune::dispatch::Kernel& kernel = Base::kernels[Base::choose(question)];
  return kernel.vectors == vectors && kernel.ragged == ragged &&
         kernel.family == (vectors == 0 ? rowtune::dispatch::Family::reread : rowtune::dispatch::Family::lanes);
}
static_assert(base_holds<rowtune::bf16>(1, false, 16));
static_assert(base_holds<rowtune::bf16>(1, false, 256));
static_assert(base_holds<rowtune::bf16>(2, false, 264));
static_assert(base_holds<rowtune::bf16>(4, false, 1024));
static_assert(base_holds<rowtune::bf16>(1, true, 129));
static_assert(base_holds<rowtune::bf16>(4, true, 1023));
static_assert(base_holds<rowtune::bf16>(0, false, 1032));
static_assert(base_holds<rowtune::bf16>(0, true, 1025));
static_assert(base_holds<rowtune::f32>(1, false, 128));
static_assert(base_holds<rowtune::f32>(8, false, 1024));
static_assert(base_holds<rowtune::f32>(8, true, 1023));
