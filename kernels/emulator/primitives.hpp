#pragma once
// The primitives of rowtune/primitives.cuh for the emulator: same names, same results bit for bit, but for exp2_fast,
// exp_accurate, natural_log and reciprocal_sqrt, which are the host's (within the same bounds). Included by
// primitives.cuh where no CUDA compiler is at work; whoever instantiates a kernel links rowtune_emulator.

#include <cmath>
#include <cstring>

#include "kernels/emulator/hooks.hpp"

#define ROWTUNE_DEVICE inline

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
inline int thread_index() { return emulator::here->thread_index; }
inline unsigned block_index() { return emulator::here->block_index; }
inline unsigned grid_blocks() { return emulator::here->grid_blocks; }

// ------------------------------------------------------------------------------------------------------- arithmetic
inline unsigned bits_of(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float float_of(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline float infinity() { return float_of(0x7f800000u); }
/// Ignores a NaN; of two NaNs the canonical one; +0 is larger than -0.
inline float larger(float a, float b) {
  if (a > b) return a;
  if (b > a) return b;
  if (a == b) return float_of(bits_of(a) & bits_of(b));
  if (a == a) return a;
  return b == b ? b : float_of(0x7fffffffu);
}
inline float multiply_add(float a, float b, float c) { return std::fma(a, b, c); }
inline float reciprocal(float x) { return 1.0f / x; }
inline float quotient(float a, float b) { return a / b; }
inline float over_count(float a, float n) { return a * (1.0f / n); }
inline float reciprocal_sqrt(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline float natural_log(float x) { return std::log(x); }
inline float exp_accurate(float x) { return std::exp(x); }
inline float exp2_fast(float x) {
  const float y = std::exp2(x);
  return y < 1.17549435e-38f ? 0.0f : y;  // 2^-126; keeps a NaN
}

// ------------------------------------------------------------------------------------------------------- warps
inline float shuffle_xor(float value, int distance) {
  return float_of(emulator::hooks::shuffle(emulator::hooks::shuffle_xor_float, bits_of(value), distance));
}
inline int shuffle_xor(int value, int distance) {
  return static_cast<int>(
      emulator::hooks::shuffle(emulator::hooks::shuffle_xor_int, static_cast<unsigned>(value), distance));
}
inline float warp_max(float x) {
  for (int d = 16; d > 0; d /= 2) x = std::fmax(x, shuffle_xor(x, d));
  return x;
}
inline float shuffle_first(float value, int width) {
  return float_of(emulator::hooks::shuffle(emulator::hooks::shuffle_first_float, bits_of(value), width));
}
inline int shuffle_first(int value, int width) {
  return static_cast<int>(
      emulator::hooks::shuffle(emulator::hooks::shuffle_first_int, static_cast<unsigned>(value), width));
}

// ------------------------------------------------------------------------------------------------------- blocks
inline void block_barrier() { emulator::hooks::block_barrier(); }

template <class T, int Count, int Tag>
T* shared_array() {
  static const char key = 0;  // one address for each instantiation, as a GPU has one array
  return static_cast<T*>(emulator::hooks::shared_array(&key, Count * sizeof(T)));
}
inline Words4* shared_dynamic() { return static_cast<Words4*>(emulator::hooks::shared_dynamic()); }
template <class T>
T shared_load(const T* p) {
  emulator::hooks::shared_load(p, sizeof(T));
  return *p;
}
template <class T>
void shared_store(T* p, T value) {
  emulator::hooks::shared_store(p, sizeof(T));
  *p = value;
}

// ----------------------------------------------------------------------------------------- clusters
inline int cluster_rank() { return emulator::here->cluster_rank; }
inline void cluster_arrive() { emulator::hooks::cluster_arrive(); }
inline void cluster_wait() { emulator::hooks::cluster_wait(); }
inline void cluster_store(float* p, int rank, float value) { emulator::hooks::cluster_store(p, rank, value); }

// ------------------------------------------------------------------------------------------------ global memory
enum Hint { keep = 0, stream = 1 };

template <int H, class T>
T global_load(const T* p) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  emulator::hooks::global_load(p, sizeof(T));
  return *p;
}
template <int H, class T>
void global_store(T* p, T value) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  emulator::hooks::global_store(p, sizeof(T));
  *p = value;
}

inline void async_copy16(Words4* shared, const Words4* global) { emulator::hooks::async_copy16(shared, global); }
inline void async_wait() { emulator::hooks::async_wait(); }

// -------------------------------------------------------------------------- words that blocks exchange through the L2
inline void exchange_store(u64* p, u64 value) {
  emulator::hooks::atomic_store(p, sizeof *p);
  *p = value;
}
inline u64 exchange_load(const u64* p) {
  emulator::hooks::atomic_load(p, sizeof *p);
  return *p;
}
inline unsigned counter_load(const unsigned* p) {
  emulator::hooks::atomic_load(p, sizeof *p);
  return *p;
}
inline void counter_store(unsigned* p, unsigned value) {
  emulator::hooks::atomic_store(p, sizeof *p);
  *p = value;
}
inline unsigned counter_add(unsigned* p, unsigned value) {
  emulator::hooks::atomic_store(p, sizeof *p);
  const unsigned before = *p;
  *p = before + value;
  return before;
}
inline void spin_pause() { emulator::hooks::spin_pause(); }
inline unsigned funnel_shift(unsigned low, unsigned high, int bits) {
  return static_cast<unsigned>(((static_cast<u64>(high) << 32) | low) >> bits);
}
inline void give_up() { emulator::hooks::give_up(); }

// ------------------------------------------------------------------------------------- 16-bit floats, two in a word
namespace emulator {

/// f16 to f32, exact.
inline float half_value(unsigned h) {
  const unsigned sign = (h & 0x8000u) << 16;
  const unsigned exponent = (h >> 10) & 0x1fu;
  const unsigned fraction = h & 0x3ffu;
  if (exponent == 31) return float_of(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) return float_of(sign | ((exponent + 112u) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return float_of(sign | bits_of(magnitude));
}
/// f32 to f16, to nearest even; NaN becomes 0x7fff, as on a GPU.
inline unsigned half_bits(float x) {
  const unsigned bits = bits_of(x);
  const unsigned sign = (bits >> 16) & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fffu;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more
  if (magnitude < 0x38800000u)                          // below 2^-14: fixed point, rounded by an addition
    return sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u);
  return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13);
}
inline unsigned bfloat_bits(float x) {
  const unsigned bits = bits_of(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

}  // namespace emulator

inline float half_low(unsigned w) { return emulator::half_value(w & 0xffffu); }
inline float half_high(unsigned w) { return emulator::half_value(w >> 16); }
inline unsigned pack_halves(float low, float high) {
  return emulator::half_bits(low) | (emulator::half_bits(high) << 16);
}
inline unsigned larger_halves(unsigned a, unsigned b) {
  return pack_halves(larger(half_low(a), half_low(b)), larger(half_high(a), half_high(b)));
}
inline float bfloat_low(unsigned w) { return float_of(w << 16); }
inline float bfloat_high(unsigned w) { return float_of(w & 0xffff0000u); }
inline unsigned pack_bfloats(float low, float high) {
  return emulator::bfloat_bits(low) | (emulator::bfloat_bits(high) << 16);
}
inline unsigned larger_bfloats(unsigned a, unsigned b) {
  return pack_bfloats(larger(bfloat_low(a), bfloat_low(b)), larger(bfloat_high(a), bfloat_high(b)));
}

}  // namespace rowtune
