// copy on the cpu: the ceiling. Elements of any dtype move as bytes of their size.
//   copy  V vectors per step; n1 bypasses the caches on the way out (rows far larger than the caches)
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/copy.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/cpu/walk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace rowtune::cpu::HWY_NAMESPACE {

template <class T, int V, bool Bypass>
void copy_slice(const Tensors& t, Slice s, Partial, Partial, float*) {
  const hn::ScalableTag<T> d;
  const std::int64_t width = static_cast<std::int64_t>(hn::Lanes(d)), n = s.end - s.begin;
  const T* x = static_cast<const T*>(t.input) + s.row * t.ld + s.begin;
  T* y = static_cast<T*>(t.output) + s.row * t.ld + s.begin;
  std::int64_t i = 0;
  if constexpr (Bypass) {  // such stores must be aligned
    const auto past =
        static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(y) / sizeof(T) % static_cast<std::uintptr_t>(width));
    i = past == 0 ? 0 : std::min(n, width - past);
    std::memmove(y, x, static_cast<std::size_t>(i) * sizeof(T));
  }
  for (; i + V * width <= n; i += V * width) {
    hn::Vec<decltype(d)> v[V];
#pragma GCC unroll 8
    for (int u = 0; u < V; ++u) v[u] = hn::LoadU(d, x + i + u * width);
#pragma GCC unroll 8
    for (int u = 0; u < V; ++u) {
      if constexpr (Bypass)
        hn::Stream(v[u], d, y + i + u * width);
      else
        hn::StoreU(v[u], d, y + i + u * width);
    }
  }
  for (; i + width <= n; i += width) hn::StoreU(hn::LoadU(d, x + i), d, y + i);
  if (i < n) std::memmove(y + i, x + i, static_cast<std::size_t>(n - i) * sizeof(T));
}

Partial copy_nothing(const Tensors&, Slice, float*) { return {}; }
Partial copy_merge(Partial a, Partial) { return a; }

template <class T, int V, bool Bypass>
void copy_rows(const Tensors& t, std::int64_t begin, std::int64_t end) {
  if (t.ld == t.cols) {  // one long row
    Tensors flat = t;
    flat.cols = 0;
    flat.ld = 1;
    copy_slice<T, V, Bypass>(flat, {begin * t.cols, 0, (end - begin) * t.cols}, {}, {}, nullptr);
    return;
  }
  for (std::int64_t row = begin; row < end; ++row) copy_slice<T, V, Bypass>(t, {row, 0, t.cols}, {}, {}, nullptr);
}

template <class T, int V, bool Bypass>
RowKernel copy_with() {
  RowKernel kernel;
  kernel.rows = copy_rows<T, V, Bypass>;
  kernel.reduce = copy_nothing;
  kernel.merge = copy_merge;
  kernel.finish = copy_slice<T, V, Bypass>;
  return kernel;
}

template <class T, int V>
RowKernel copy_of(const Config& config) {
  return config.get('n', 0) == 1 ? copy_with<T, V, true>() : copy_with<T, V, false>();
}

template <class T>
RowKernel copy_of_width(const Config& config) {
  switch (config.vector_width()) {
    case 2:
      return copy_of<T, 2>(config);
    case 4:
      return copy_of<T, 4>(config);
    case 8:
      return copy_of<T, 8>(config);
    default:
      return {};
  }
}

RowKernel copy_kernel(Dtype dtype, const Config& config) {
  return dtype == Dtype::f32 ? copy_of_width<float>(config) : copy_of_width<std::uint16_t>(config);
}

int vector_lanes() { return lanes(); }
const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace rowtune::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rowtune::cpu {
HWY_EXPORT(copy_kernel);
HWY_EXPORT(vector_lanes);
HWY_EXPORT(target_name);

RowKernel find_copy(Dtype dtype, const Config& config) { return HWY_DYNAMIC_DISPATCH(copy_kernel)(dtype, config); }
int simd_lanes() { return HWY_DYNAMIC_DISPATCH(vector_lanes)(); }
const char* simd_target() { return HWY_DYNAMIC_DISPATCH(target_name)(); }
std::string highway_version() { return fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH); }
}  // namespace rowtune::cpu
#endif
