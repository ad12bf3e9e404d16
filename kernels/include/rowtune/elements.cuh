#pragma once
// Element types of tensors and packed vectors of them. Arithmetic is always fp32: a vector is unpacked to floats, and
// packed again with one rounding to nearest even.

#include "rowtune/primitives.cuh"

namespace rowtune {

struct f32 {
  static constexpr int bytes = 4;
};
struct f16 {
  static constexpr int bytes = 2;
};
struct bf16 {
  static constexpr int bytes = 2;
};

/// The register form of a vector of `Bytes` bytes.
template <int Bytes>
struct WordsOf;
template <>
struct WordsOf<2> {
  using type = unsigned short;
};
template <>
struct WordsOf<4> {
  using type = unsigned;
};
template <>
struct WordsOf<8> {
  using type = Words2;
};
template <>
struct WordsOf<16> {
  using type = Words4;
};

ROWTUNE_DEVICE unsigned word_of(unsigned short v, int) { return v; }
ROWTUNE_DEVICE unsigned word_of(unsigned v, int) { return v; }
ROWTUNE_DEVICE unsigned word_of(const Words2& v, int i) { return v.w[i]; }
ROWTUNE_DEVICE unsigned word_of(const Words4& v, int i) { return v.w[i]; }
ROWTUNE_DEVICE void set_word(unsigned short& v, int, unsigned w) { v = static_cast<unsigned short>(w); }
ROWTUNE_DEVICE void set_word(unsigned& v, int, unsigned w) { v = w; }
ROWTUNE_DEVICE void set_word(Words2& v, int i, unsigned w) { v.w[i] = w; }
ROWTUNE_DEVICE void set_word(Words4& v, int i, unsigned w) { v.w[i] = w; }

template <class T>
struct Codec;
template <>
struct Codec<f16> {
  static ROWTUNE_DEVICE float low(unsigned w) { return half_low(w); }
  static ROWTUNE_DEVICE float high(unsigned w) { return half_high(w); }
  static ROWTUNE_DEVICE unsigned pack(float low, float high) { return pack_halves(low, high); }
  static ROWTUNE_DEVICE unsigned larger(unsigned a, unsigned b) { return larger_halves(a, b); }
};
template <>
struct Codec<bf16> {
  static ROWTUNE_DEVICE float low(unsigned w) { return bfloat_low(w); }
  static ROWTUNE_DEVICE float high(unsigned w) { return bfloat_high(w); }
  static ROWTUNE_DEVICE unsigned pack(float low, float high) { return pack_bfloats(low, high); }
  static ROWTUNE_DEVICE unsigned larger(unsigned a, unsigned b) { return larger_bfloats(a, b); }
};

/// V elements of T, packed as they lie in memory. V * T::bytes is 2, 4, 8 or 16.
template <class T, int V>
struct Vec {
  using Words = typename WordsOf<V * T::bytes>::type;
  Words words;

  ROWTUNE_DEVICE float get(int i) const {
    const unsigned w = word_of(words, i * T::bytes / 4);
    return i % 2 == 0 ? Codec<T>::low(w) : Codec<T>::high(w);
  }
  ROWTUNE_DEVICE void unpack(float (&x)[V]) const {
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = get(i);
  }
  static ROWTUNE_DEVICE Vec pack(const float (&x)[V]) {
    Vec v;
    if constexpr (V == 1) {
      set_word(v.words, 0, Codec<T>::pack(x[0], 0.0f));
    } else {
#pragma unroll
      for (int i = 0; i < V; i += 2) set_word(v.words, i / 2, Codec<T>::pack(x[i], x[i + 1]));
    }
    return v;
  }
};

template <int V>
struct Vec<f32, V> {
  using Words = typename WordsOf<V * 4>::type;
  Words words;

  ROWTUNE_DEVICE float get(int i) const { return float_of(word_of(words, i)); }
  ROWTUNE_DEVICE void unpack(float (&x)[V]) const {
#pragma unroll
    for (int i = 0; i < V; ++i) x[i] = get(i);
  }
  static ROWTUNE_DEVICE Vec pack(const float (&x)[V]) {
    Vec v;
#pragma unroll
    for (int i = 0; i < V; ++i) set_word(v.words, i, bits_of(x[i]));
    return v;
  }
};

/// Between two looks at a packed row, `opaque` being a zero that the compiler cannot know (RowArgs::opaque): without
/// it the floats of the first look are kept for the second, two registers for each one of the packed row (192 bytes
/// of spills at 8 vectors and 64 registers on sm_90). An empty asm statement does not help: ptxas looks through it.
template <class T, int V>
ROWTUNE_DEVICE Vec<T, V> forget_unpacked(const Vec<T, V>& v, unsigned opaque) {
  Vec<T, V> same = v;
  if constexpr (T::bytes == 2) {
#pragma unroll
    for (int i = 0; i < (V + 1) / 2; ++i) set_word(same.words, i, word_of(v.words, i) ^ opaque);
  }
  return same;
}

/// Loads and stores at an address aligned to the vector's size.
template <class T, int V, int H>
ROWTUNE_DEVICE Vec<T, V> load_vector(const void* p) {
  return {global_load<H>(static_cast<const typename Vec<T, V>::Words*>(p))};
}
template <class T, int V, int H>
ROWTUNE_DEVICE void store_vector(void* p, const Vec<T, V>& v) {
  global_store<H>(static_cast<typename Vec<T, V>::Words*>(p), v.words);
}

}  // namespace rowtune
