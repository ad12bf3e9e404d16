#pragma once
// From the constants of a table to code: the __global__ functions that a dispatch table's kernels are, for nvcc, C++17.

#include <type_traits>

#include "rowtune/argmax_logsumexp.cuh"
#include "rowtune/dispatch/tuned.cuh"
#include "rowtune/kernels.cuh"
#include "rowtune/layernorm.cuh"
#include "rowtune/rmsnorm.cuh"
#include "rowtune/softmax.cuh"

namespace rowtune {
namespace dispatch {

/// A kernel's compile-time parameters: number I of a source (Tuned or Base).
template <class T, Operation O, class Source, int I>
struct TraitsOf : KernelTraits {
  static constexpr Kernel kernel = Source::kernels[I];
  using Element = T;
  static constexpr int block = kernel.block;
  static constexpr int vector = kernel.vector;
  static constexpr int vectors = kernel.vectors > 0 ? kernel.vectors : 1;
  static constexpr int rows_per_warp = kernel.rows_per_warp;
  static constexpr int split = kernel.split;
  static constexpr int batch = kernel.batch;
  static constexpr bool ragged = kernel.ragged;
  static constexpr bool packed = kernel.packed;
  static constexpr bool loop = always_loops(kernel);  // `serves` keeps grids within their limit
  static constexpr bool early = kernel.early;
  static constexpr bool ahead = kernel.ahead;
  static constexpr bool shared_weights = kernel.shared_weights > 0;
  static constexpr bool async = kernel.async;
  static constexpr int load_hint = load_hint_of(kernel);
  static constexpr int again_hint = later_hint_of(kernel);
  static constexpr int store_hint = later_hint_of(kernel);
  static constexpr int exp = kernel.exp;
  static constexpr int variance = kernel.variance;
  static constexpr bool weight = Source::weight;
  static constexpr bool bias = Source::bias;
  static constexpr bool adds_residual = O == Operation::fused_add_rmsnorm;
};

/// Weights of a vector or an edge, loaded when they are used.
template <class K, class At, int N>
ROWTUNE_DEVICE void weights_at(const void* array, i64 cols, const At& at, float (&w)[N]) {
  if constexpr (N == K::vector)
    read_weights<K>(array, cols, at, last_weights<K>(array, cols)).unpack(w);
  else
    read_at<K, fill_zero, keep, 1>(static_cast<const char*>(array), at).unpack(w);
}

/// The norms of the base, whose weight and bias are there or not at run time.
template <class K>
struct AnyLayerNorm : LayerNormOperation<K> {
  using Known = typename LayerNormOperation<K>::Known;
  template <class View, class Weights, class At, int N>
  static ROWTUNE_DEVICE void apply(const RowArgs& a, const Known& known, const Weights&, int, const At& at,
                                   float (&x)[N]) {
    float weight[N], bias[N];
    if (a.weight != nullptr) weights_at<K>(a.weight, a.cols, at, weight);
    if (a.bias != nullptr) weights_at<K>(a.bias, a.cols, at, bias);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float normal = LayerNormOperation<K>::template difference<View>(x[j], known) * known.rstd;
      const float factor = a.weight != nullptr ? weight[j] + a.weight_offset : 1.0f;
      x[j] = a.bias != nullptr ? multiply_add(normal, factor, bias[j]) : normal * factor;
    }
  }
};
template <class K>
struct AnyRmsNorm : RmsNormOperation<K> {
  using Known = typename RmsNormOperation<K>::Known;
  template <class View, class Weights, class At, int N>
  static ROWTUNE_DEVICE void apply(const RowArgs& a, const Known& known, const Weights&, int, const At& at,
                                   float (&x)[N]) {
    float weight[N];
    if (a.weight != nullptr) weights_at<K>(a.weight, a.cols, at, weight);
#pragma unroll
    for (int j = 0; j < N; ++j) x[j] = x[j] * known.rstd * (a.weight != nullptr ? weight[j] + a.weight_offset : 1.0f);
  }
};

constexpr SoftmaxMethod softmax_method(Family f) {
  return f == Family::threepass ? softmax_threepass : rereads(f) ? softmax_online : softmax_folded;
}

template <Operation O, class K, bool AnyOptions>
struct OperationOf {
  using type = SoftmaxOperation<K, softmax_method(K::kernel.family), O == Operation::log_softmax>;
};
template <class K, bool AnyOptions>
struct OperationOf<Operation::layernorm, K, AnyOptions> {
  using type = std::conditional_t<AnyOptions, AnyLayerNorm<K>, LayerNormOperation<K>>;
};
template <class K, bool AnyOptions>
struct OperationOf<Operation::rmsnorm, K, AnyOptions> {
  using type = std::conditional_t<AnyOptions, AnyRmsNorm<K>, RmsNormOperation<K>>;
};
template <class K, bool AnyOptions>
struct OperationOf<Operation::fused_add_rmsnorm, K, AnyOptions> : OperationOf<Operation::rmsnorm, K, AnyOptions> {};
template <class K, bool AnyOptions>
struct OperationOf<Operation::argmax_logsumexp, K, AnyOptions> {
  using type = ArgmaxLogSumExpOperation<K, rereads(K::kernel.family)>;
};

template <class K, class Op>
ROWTUNE_DEVICE void run(const RowArgs& args) {
  constexpr Family f = K::kernel.family;
  if constexpr (f == Family::lanes && K::packed)
    lanes_kernel<K, Op, PackedView>(args);
  else if constexpr (f == Family::lanes)
    lanes_kernel<K, Op, FloatView>(args);
  else if constexpr (f == Family::block && K::packed)
    block_kernel<K, Op, PackedView>(args);
  else if constexpr (f == Family::block)
    block_kernel<K, Op, FloatView>(args);
  else if constexpr (f == Family::shared)
    block_kernel<K, Op, SharedView>(args);
  else if constexpr (f == Family::cluster && K::packed)
    cluster_kernel<K, Op, PackedView>(args);
  else if constexpr (f == Family::cluster)
    cluster_kernel<K, Op, FloatView>(args);
  else if constexpr (f == Family::cluster_shared)
    cluster_kernel<K, Op, SharedView>(args);
  else if constexpr (f == Family::split && K::packed)
    split_kernel<K, Op, PackedView>(args);
  else if constexpr (f == Family::split)
    split_kernel<K, Op, FloatView>(args);
  else if constexpr (f == Family::split_reread)
    split_kernel<K, Op, RereadView>(args);
  else
    block_kernel<K, Op, RereadView>(args);
}

/// Whether this compilation's GPU has what the kernel needs. Where it has not, the kernel is empty and never chosen:
/// the table is for another device.
#if defined(__CUDA_ARCH__)
template <class K>
constexpr bool compiles_here = __CUDA_ARCH__ / 10 >= least_architecture(K::kernel);
#else
template <class K>
constexpr bool compiles_here = true;
#endif

template <class K, class Op>
__global__ void __launch_bounds__(K::block) plain_entry(const RowArgs args) {
  if constexpr (compiles_here<K>) run<K, Op>(args);
}
template <class K, class Op>
__global__ void __launch_bounds__(K::block, bound_of(K::kernel)) bounded_entry(const RowArgs args) {
  if constexpr (compiles_here<K>) run<K, Op>(args);
}

}  // namespace dispatch
}  // namespace rowtune
