#pragma once
// Everything that goes beyond plain C++ in a kernel sits behind a named function of this header: thread indices, warp
// shuffles, barriers, shared memory, clusters, cache hints, inline PTX, fast arithmetic. This is the implementation
// for a GPU (NVRTC and nvcc); kernels/emulator has a second one that runs the same kernels on a CPU.
// What an older GPU lacks is a constraint of the space (kernels/cuda/algorithms.cpp), not a branch in a kernel.

#include "rowtune/algebra.cuh"

#if !defined(__CUDACC__)
#include "kernels/emulator/primitives.hpp"
#else

#define ROWTUNE_DEVICE __device__ __forceinline__

namespace rowtune {

using i64 = long long;
using u64 = unsigned long long;

struct alignas(8) Words2 {
  unsigned w[2];
};
struct alignas(16) Words4 {
  unsigned w[4];
};

// ---------------------------------------------------------------------------------------------- where a thread is
ROWTUNE_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
ROWTUNE_DEVICE unsigned block_index() { return blockIdx.x; }
ROWTUNE_DEVICE unsigned grid_blocks() { return gridDim.x; }

// ------------------------------------------------------------------------------------------------------- warps
/// The value of lane (own lane ^ distance). All 32 lanes of the warp take part.
ROWTUNE_DEVICE float shuffle_xor(float value, int distance) { return __shfl_xor_sync(0xffffffffu, value, distance); }
ROWTUNE_DEVICE int shuffle_xor(int value, int distance) { return __shfl_xor_sync(0xffffffffu, value, distance); }
/// The value of the first lane of this group of `width` lanes.
ROWTUNE_DEVICE float shuffle_first(float value, int width) { return __shfl_sync(0xffffffffu, value, 0, width); }
ROWTUNE_DEVICE int shuffle_first(int value, int width) { return __shfl_sync(0xffffffffu, value, 0, width); }
/// The largest value of the 32 lanes, none of which is a NaN. From sm_80 on one instruction on integers of the same
/// order.
ROWTUNE_DEVICE float warp_max(float x) {
#if __CUDA_ARCH__ >= 800
  const int bits = __float_as_int(x);
  const int most = __reduce_max_sync(0xffffffffu, bits ^ ((bits >> 31) & 0x7fffffff));
  return __int_as_float(most ^ ((most >> 31) & 0x7fffffff));
#else
#pragma unroll
  for (int d = 16; d > 0; d /= 2) x = fmaxf(x, shuffle_xor(x, d));
  return x;
#endif
}

// ------------------------------------------------------------------------------------------------------- blocks
ROWTUNE_DEVICE void block_barrier() { __syncthreads(); }

/// Static shared memory: one array a tag and block. Accesses go through shared_load and shared_store.
template <class T, int Count, int Tag>
ROWTUNE_DEVICE T* shared_array() {
  __shared__ T array[Count];
  return array;
}
/// The dynamic shared memory of the launch, 16-byte aligned.
ROWTUNE_DEVICE Words4* shared_dynamic() {
  extern __shared__ Words4 rowtune_dynamic_shared[];
  return rowtune_dynamic_shared;
}
template <class T>
ROWTUNE_DEVICE T shared_load(const T* p) {
  return *p;
}
template <class T>
ROWTUNE_DEVICE void shared_store(T* p, T value) {
  *p = value;
}

// ----------------------------------------------------------------------------------------- clusters (sm_90 and up)
ROWTUNE_DEVICE int cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
/// Arrive orders this thread's earlier shared-memory accesses; wait ends when all threads of the cluster arrived.
ROWTUNE_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
ROWTUNE_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
/// Stores into the shared memory of block `rank` of the cluster, at the place where `p` lies in this block's.
ROWTUNE_DEVICE void cluster_store(float* p, int rank, float value) {
  const unsigned local = static_cast<unsigned>(__cvta_generic_to_shared(p));
  asm volatile(
      "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; st.shared::cluster.f32 [remote], %2; }" ::"r"(
          local),
      "r"(rank), "f"(value)
      : "memory");
}

// ------------------------------------------------------------------------------------------------ global memory
/// Cache hints: `keep` the default; `stream` for data touched once, so that it leaves the caches first.
enum Hint { keep = 0, stream = 1 };

template <int H>
ROWTUNE_DEVICE unsigned short global_load(const unsigned short* p) {
  return H == stream ? __ldcs(p) : *p;
}
template <int H>
ROWTUNE_DEVICE unsigned global_load(const unsigned* p) {
  return H == stream ? __ldcs(p) : *p;
}
template <int H>
ROWTUNE_DEVICE Words2 global_load(const Words2* p) {
  const uint2* q = reinterpret_cast<const uint2*>(p);
  const uint2 v = H == stream ? __ldcs(q) : *q;
  return {{v.x, v.y}};
}
template <int H>
ROWTUNE_DEVICE Words4 global_load(const Words4* p) {
  const uint4* q = reinterpret_cast<const uint4*>(p);
  const uint4 v = H == stream ? __ldcs(q) : *q;
  return {{v.x, v.y, v.z, v.w}};
}
template <int H>
ROWTUNE_DEVICE void global_store(unsigned short* p, unsigned short v) {
  H == stream ? __stcs(p, v) : static_cast<void>(*p = v);
}
template <int H>
ROWTUNE_DEVICE void global_store(unsigned* p, unsigned v) {
  H == stream ? __stcs(p, v) : static_cast<void>(*p = v);
}
template <int H>
ROWTUNE_DEVICE void global_store(Words2* p, Words2 v) {
  uint2* q = reinterpret_cast<uint2*>(p);
  const uint2 u = make_uint2(v.w[0], v.w[1]);
  H == stream ? __stcs(q, u) : static_cast<void>(*q = u);
}
template <int H>
ROWTUNE_DEVICE void global_store(Words4* p, Words4 v) {
  uint4* q = reinterpret_cast<uint4*>(p);
  const uint4 u = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
  H == stream ? __stcs(q, u) : static_cast<void>(*q = u);
}

// ------------------------------------------------------------------- asynchronous copies to shared memory (sm_80 and
// up)
ROWTUNE_DEVICE void async_copy16(Words4* shared, const Words4* global) {
  const unsigned local = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(local), "l"(global) : "memory");
}
/// Ends when all this thread's asynchronous copies have landed; a barrier shows them to the other threads.
ROWTUNE_DEVICE void async_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// -------------------------------------------------------------------------- words that blocks exchange through the L2
/// 64-bit relaxed stores and loads at device scope: a value and its tag travel in one word, so no fence is needed.
ROWTUNE_DEVICE void exchange_store(u64* p, u64 value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(value) : "memory");
}
ROWTUNE_DEVICE u64 exchange_load(const u64* p) {
  u64 value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
  return value;
}
ROWTUNE_DEVICE unsigned counter_load(const unsigned* p) {
  unsigned value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
  return value;
}
ROWTUNE_DEVICE void counter_store(unsigned* p, unsigned value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
ROWTUNE_DEVICE unsigned counter_add(unsigned* p, unsigned value) { return atomicAdd(p, value); }
/// Called between two looks at a word that another block will write. Nothing to do on a GPU: a pause costs latency.
ROWTUNE_DEVICE void spin_pause() {}
/// Both words in a row, shifted down by `bits` (0 to 31): the low word of the result.
ROWTUNE_DEVICE unsigned funnel_shift(unsigned low, unsigned high, int bits) { return __funnelshift_r(low, high, bits); }
/// Ends the kernel with an error: a wait that should have ended long ago.
ROWTUNE_DEVICE void give_up() { __trap(); }

// -------------------------------------------------------------------------------------------------- arithmetic
ROWTUNE_DEVICE unsigned bits_of(float x) { return __float_as_uint(x); }
ROWTUNE_DEVICE float float_of(unsigned bits) { return __uint_as_float(bits); }
ROWTUNE_DEVICE float infinity() { return float_of(0x7f800000u); }
ROWTUNE_DEVICE float larger(float a, float b) { return fmaxf(a, b); }  ///< ignores a NaN
ROWTUNE_DEVICE float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
ROWTUNE_DEVICE float reciprocal(float x) { return __frcp_rn(x); }
ROWTUNE_DEVICE float quotient(float a, float b) { return __fdiv_rn(a, b); }
/// a / n for a count n from 1 to 2^31: within 2 ulp, and rounded once where n is a power of two. A division has a
/// branch for what does not occur here, and waits for a.
ROWTUNE_DEVICE float over_count(float a, float n) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(n));
  return a * __fmaf_rn(__fmaf_rn(-n, r, 1.0f), r, r);
}
ROWTUNE_DEVICE float reciprocal_sqrt(float x) { return rsqrtf(x); }  ///< within 2 ulp
ROWTUNE_DEVICE float natural_log(float x) { return logf(x); }        ///< within 1 ulp
/// exp, within 2 ulp, subnormal results kept.
ROWTUNE_DEVICE float exp_accurate(float x) { return expf(x); }
/// 2^x by the special-function unit: within 2 ulp, results below 2^-126 become 0.
ROWTUNE_DEVICE float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// ------------------------------------------------------------------------------------- 16-bit floats, two in a word
/// The word holds element 0 in its low half. Packing rounds to nearest even and keeps NaN a NaN.
ROWTUNE_DEVICE float half_low(unsigned w) {
  float x;
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.f32.f16 %0, lo; }" : "=f"(x) : "r"(w));
  return x;
}
ROWTUNE_DEVICE float half_high(unsigned w) {
  float x;
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.f32.f16 %0, hi; }" : "=f"(x) : "r"(w));
  return x;
}
ROWTUNE_DEVICE unsigned pack_halves(float low, float high) {
  unsigned w;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  asm("{ .reg .b16 lo, hi; cvt.rn.f16.f32 lo, %1; cvt.rn.f16.f32 hi, %2; mov.b32 %0, {lo, hi}; }"
      : "=r"(w)
      : "f"(low), "f"(high));
#else
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
#endif
  return w;
}
/// Element by element maximum of two words; a NaN beside a number is ignored.
ROWTUNE_DEVICE unsigned larger_halves(unsigned a, unsigned b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return pack_halves(larger(half_low(a), half_low(b)), larger(half_high(a), half_high(b)));
#else
  unsigned w;
  asm("max.f16x2 %0, %1, %2;" : "=r"(w) : "r"(a), "r"(b));
  return w;
#endif
}
ROWTUNE_DEVICE float bfloat_low(unsigned w) { return float_of(w << 16); }
ROWTUNE_DEVICE float bfloat_high(unsigned w) { return float_of(w & 0xffff0000u); }
ROWTUNE_DEVICE unsigned pack_bfloats(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  const auto round = [](float x) -> unsigned {
    const unsigned b = bits_of(x);
    if ((b & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
    return (b + 0x7fffu + ((b >> 16) & 1u)) >> 16;
  };
  return round(low) | (round(high) << 16);
#else
  unsigned w;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(high), "f"(low));
  return w;
#endif
}

ROWTUNE_DEVICE unsigned larger_bfloats(unsigned a, unsigned b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return pack_bfloats(larger(bfloat_low(a), bfloat_low(b)), larger(bfloat_high(a), bfloat_high(b)));
#else
  unsigned w;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(w) : "r"(a), "r"(b));
  return w;
#endif
}

}  // namespace rowtune
#endif
