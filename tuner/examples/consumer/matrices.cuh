#pragma once
// The dtype on the host, test values, and matrices on the device. Needs DTYPE and the table's header.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

/// How each dtype is on the host, and half the distance of its numbers around 1.
template <class Element>
struct Host;
template <>
struct Host<rowtune::f32> {
  using Type = float;
  static Type of(float x) { return x; }
  static float to(Type x) { return x; }
  static constexpr double half_ulp = 0x1p-24, least = 0x1p-149;
};
template <>
struct Host<rowtune::f16> {
  using Type = __half;
  static Type of(float x) { return __float2half_rn(x); }
  static float to(Type x) { return __half2float(x); }
  static constexpr double half_ulp = 0x1p-11, least = 0x1p-24;
};
template <>
struct Host<rowtune::bf16> {
  using Type = __nv_bfloat16;
  static Type of(float x) { return __float2bfloat16_rn(x); }
  static float to(Type x) { return __bfloat162float(x); }
  static constexpr double half_ulp = 0x1p-8, least = 0x1p-133;
};

namespace {

using T = rowtune::DTYPE;
using H = Host<T>;
using Element = H::Type;

int failures = 0;

void fail(const std::string& what) {
  if (++failures <= 20) std::printf("  WRONG %s\n", what.c_str());
}
void require(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  std::printf("  FAILED %s: %s\n", doing, cudaGetErrorString(error));
  std::exit(1);
}

/// About uniform in (-2, 2), with a spike in each row, a function of the position.
Element value(int tensor, long long row, long long col, long long cols) {
  unsigned long long x = static_cast<unsigned long long>(tensor) * 0x9e3779b97f4a7c15ULL +
                         static_cast<unsigned long long>(row * 1000003 + col) * 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 31, x *= 0x94d049bb133111ebULL, x ^= x >> 29;
  const float uniform = static_cast<float>(x >> 40) / 4194304.0f - 2.0f;
  if (tensor == 2) return H::of(1.0f + 0.25f * uniform);  // weight
  const long long spike = row % 3 == 0 ? cols - 1 : row % 3 == 1 ? 0 : cols / 2;
  return H::of(tensor == 0 && col == spike ? uniform + 7.0f : uniform);
}

/// A matrix on the device, with guards around it.
template <class E>
struct MatrixOf {
  static constexpr long long guard = 64;  // elements
  long long rows, cols, stride, offset;
  std::vector<E> host;
  E* device = nullptr;

  MatrixOf(long long r, long long c, long long s, long long off, E poison) : rows(r), cols(c), stride(s), offset(off) {
    host.assign(static_cast<std::size_t>(2 * guard + offset + (rows - 1) * stride + cols), poison);
    require(cudaMalloc(&device, bytes()), "allocating");
    upload();
  }
  ~MatrixOf() { cudaFree(device); }
  MatrixOf(const MatrixOf&) = delete;
  MatrixOf& operator=(const MatrixOf&) = delete;
  std::size_t bytes() const { return host.size() * sizeof(E); }
  E& at(long long i, long long j) { return host[static_cast<std::size_t>(guard + offset + i * stride + j)]; }
  void upload() { require(cudaMemcpy(device, host.data(), bytes(), cudaMemcpyHostToDevice), "copying to the device"); }
  E* data() const { return device + guard + offset; }
  std::vector<E> download() const {
    std::vector<E> now(host.size());
    require(cudaMemcpy(now.data(), device, bytes(), cudaMemcpyDeviceToHost), "copying from the device");
    return now;
  }
};

/// Tensor `tensor` of the values above; -1: an output.
struct Matrix : MatrixOf<Element> {
  Matrix(long long r, long long c, long long s, long long off, int tensor) : MatrixOf(r, c, s, off, H::of(-77.0f)) {
    if (tensor < 0) return;
    for (long long i = 0; i < rows; ++i)
      for (long long j = 0; j < cols; ++j) at(i, j) = value(tensor, i, j, cols);
    upload();
  }
};

}  // namespace
