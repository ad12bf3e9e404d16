#pragma once
// Launchers over a dispatch table: check, look up, launch. For nvcc, C++17. Included by the generated
// rowtune_dispatch.cuh.
//
//   rowtune::RowParams p;
//   p.input = x, p.output = y, p.rows = 4096, p.cols = 1000, p.stream = stream;
//   cudaError_t error = rowtune::softmax<rowtune::bf16>(p);
//
// A launcher allocates nothing, waits for nothing, and may be called from any thread, on any device, and while a stream
// is captured into a graph. It launches on the current device, which must be the stream's. The first launch of a kernel
// on a device loads it; `prepare` does that for all of them ahead of time: call it before a capture.
//
// Workspace. Kernels that share a row among blocks exchange partial results through a workspace: `workspace_bytes` says
// how many bytes a call needs, often 0. Zero it once when it is allocated (cudaMemset), never after. It serves any
// operation, shape and number of launches on one stream, and belongs to that stream: one for each stream that runs at
// the same time, and one for each graph that may be replayed beside another.
//
// Only the operations and dtypes that are called are compiled. The tuner compiles with -fmad=false; with it the outputs
// are bit for bit those that were verified.

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rowtune/dispatch/device_facts.cuh"
#include "rowtune/dispatch/entries.cuh"

namespace rowtune {

/// How a call was answered.
struct Match {
  dispatch::MatchKind kind = dispatch::MatchKind::not_tuned;
  const char* config = "";  ///< name of the config that is launched
  float promised_us = 0;    ///< what was measured for this shape; 0 unless exact
  int vector_width = 0;     ///< elements of one access
  bool narrowed = false;    ///< the pointers or strides did not allow the widest access
};

/// What a launcher is given. Pointers are to device memory, element (0, 0); strides are between rows, in elements; the
/// inner stride is 1. Fields that an operation lacks must stay null.
struct RowParams {
  static constexpr unsigned current_version = 1;
  unsigned version = current_version;  ///< of this struct: a library and its caller must agree
  const void* input = nullptr;         ///< fused_add_rmsnorm: hidden
  const void* residual = nullptr;      ///< fused_add_rmsnorm
  const void* weight = nullptr;        ///< norms: cols elements, or null for 1
  const void* bias = nullptr;          ///< layernorm: cols elements, or null for 0
  void* output = nullptr;              ///< may be `input`: in place; argmax_logsumexp: see there
  void* residual_out = nullptr;        ///< fused_add_rmsnorm: residual + hidden, rounded; may be `residual`
  long long rows = 0;                  ///< 0 to 2^31 - 1
  long long cols = 0;
  long long input_stride = 0;  ///< 0: cols, as for the others
  long long residual_stride = 0;
  long long output_stride = 0;
  long long residual_out_stride = 0;
  float eps = 1e-6f;             ///< norms; layernorm is mostly used with 1e-5f
  bool weight_plus_one = false;  ///< norms: multiply by 1 + weight, as Gemma's checkpoints want
  void* workspace = nullptr;     ///< 16-byte aligned, zeroed once; see above
  std::size_t workspace_bytes = 0;
  cudaStream_t stream = nullptr;
  Match* match = nullptr;  ///< optional: receives how the call was answered, also when it fails
};

namespace dispatch {

// ------------------------------------------------------------------------------------------------------------ launches

/// Launches kernel I of a source on the current device; with null `args` only gets it ready.
template <class T, Operation O, class Source, int I>
cudaError_t launch(const RowArgs* args, cudaStream_t stream, int device, int units) {
  using K = TraitsOf<T, O, Source, I>;
  using Op = typename OperationOf<O, K, Source::any_options>::type;
  constexpr Kernel kernel = K::kernel;
  void (*entry)(const RowArgs);
  if constexpr (bound_of(kernel) > 0)
    entry = bounded_entry<K, Op>;
  else
    entry = plain_entry<K, Op>;
  const Grid grid = grid_of(kernel, args != nullptr ? args->rows : 1);

  // 0: not ready on this device; else 1 + the most blocks of a resident grid. Two threads may both get it ready.
  static std::atomic<long long> ready[most_devices];
  long long most = ready[device].load(std::memory_order_acquire) - 1;
  if (most < 0) {
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, entry);
    if (error == cudaSuccess &&
        asks_for_shared(static_cast<long long>(attributes.sharedSizeBytes), grid.dynamic_shared))
      error = cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, grid.dynamic_shared);
    if (error == cudaSuccess && grid.cluster > 8)
      error = cudaFuncSetAttribute(entry, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    most = 0;
    if (error == cudaSuccess && grid.resident) {
      int per_unit = 0;
      error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_unit, entry, kernel.block,
                                                            static_cast<std::size_t>(grid.dynamic_shared));
      most = resident_blocks(kernel.split, kernel.resident_blocks, per_unit, units);
      if (error == cudaSuccess && most == 0) error = cudaErrorLaunchOutOfResources;
    }
    if (error != cudaSuccess) return error;
    ready[device].store(most + 1, std::memory_order_release);
  }
  if (args == nullptr) return cudaSuccess;

  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.resident && most < grid.blocks ? most : grid.blocks), 1, 1);
  config.blockDim = dim3(static_cast<unsigned>(kernel.block), 1, 1);
  config.dynamicSmemBytes = static_cast<std::size_t>(grid.dynamic_shared);
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  if (grid.cluster > 1) {
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(grid.cluster);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    config.attrs = &cluster;
    config.numAttrs = 1;
  }
  return cudaLaunchKernelEx(&config, entry, *args);
}

using Launcher = cudaError_t (*)(const RowArgs*, cudaStream_t, int device, int units);

template <class T, Operation O, class Source, int... I>
cudaError_t launch_number(int number, std::integer_sequence<int, I...>, const RowArgs* args, cudaStream_t stream,
                          int device, int units) {
  static constexpr Launcher launchers[] = {&launch<T, O, Source, I>...};
  return launchers[number](args, stream, device, units);
}

/// The tuned kernels, seen as a source.
template <Operation O, class T>
struct TunedSource : Tuned<O, T> {
  static constexpr bool any_options = false;
};

/// What one writes by hand: a warp per row up to 1024 columns, a block per row that reads it again beyond. Serves every
/// shape, pointer and stride.
template <Operation O, class T>
struct Base {
  static constexpr bool any_options = true;
  static constexpr bool weight = false;  // not fixed: looked at when the kernel runs
  static constexpr bool bias = false;
  static constexpr int widest = 16 / T::bytes;
  static constexpr int longest_lanes_row = 1024;
  static constexpr Kernel lanes(int vector, bool ragged, int vectors) {
    return {Family::lanes, 128, 1, vector, 1, vectors, ragged, false, false, 4, 0, 1, 3, 0, 0, false, false, 0};
  }
  static constexpr Kernel reread(int vector, bool ragged) {
    return {Family::reread, 256, 1, vector, 1, 0, ragged, false, false, 4, 0, 1, 3, 0, 0, false, false, 0};
  }
  /// Vectors of a lane for the longest of these rows. Shorter rows have kernels of their own, for 1, 2, ... vectors:
  /// one for the longest would take 58 us instead of 34 for 131072x128 in bf16 on an H200.
  static constexpr int most_vectors = longest_lanes_row / (32 * widest);
  static constexpr int lanes_count = most_vectors == 4 ? 7 : 9;
  static constexpr int kernel_count = lanes_count + 4;
  struct Kernels {
    Kernel all[kernel_count];
    constexpr const Kernel& operator[](int i) const { return all[i]; }
  };
  static constexpr Kernels make_kernels() {
    static_assert(most_vectors == 4 || most_vectors == 8, "of 16-bit elements and of f32");
    Kernels k{};
    int count = 0;
    for (int vectors = 1; vectors <= most_vectors; vectors *= 2)
      for (const bool ragged : {false, true}) k.all[count++] = lanes(widest, ragged, vectors);
    k.all[count++] = lanes(1, true, longest_lanes_row / 32);
    k.all[count++] = reread(widest, false);
    k.all[count++] = reread(widest, true);
    k.all[count++] = reread(widest / 2, true);
    k.all[count++] = reread(1, true);
    return k;
  }
  static constexpr Kernels kernels = make_kernels();
  static constexpr const char* name(int i) {
    constexpr const char* of_lanes[] = {"base: a warp per row", "base: a warp per row, ragged"};
    constexpr const char* others[] = {"base: a warp per row, one element an access", "base: a block per row",
                                      "base: a block per row, ragged", "base: a block per row, half as wide accesses",
                                      "base: a block per row, one element an access"};
    return i < lanes_count - 1 ? of_lanes[i % 2] : others[i - (lanes_count - 1)];
  }
  static constexpr int choose(const Question& q) {
    for (int i = q.cols <= longest_lanes_row ? 0 : lanes_count; i < kernel_count; ++i)
      if (serves(kernels[i], q)) return i;
    return kernel_count - 1;
  }
};

// -------------------------------------------------------------------------------------------------------------- checks

/// A matrix in memory, as far as overlaps matter.
struct Extent {
  std::uintptr_t first;
  long long rows, stride, cols;  ///< bytes, but for rows
  std::uintptr_t end() const { return first + static_cast<std::uintptr_t>((rows - 1) * stride + cols); }
};

/// Whether two matrices share an element. Matrices whose ranges meet and whose strides differ are taken to.
inline bool overlap(const Extent& a, const Extent& b) {
  if (a.end() <= b.first || b.end() <= a.first) return false;
  if (a.rows == 1 || b.rows == 1 || a.stride != b.stride) return true;
  const long long behind = (static_cast<long long>(b.first - a.first) % a.stride + a.stride) % a.stride;
  return behind < a.cols || behind > a.stride - b.cols;
}

/// Everything about a call but its kernel.
struct Call {
  RowArgs args{};
  Question question{};
};

/// Checks the parameters and fills what follows from them. `empty`: there is nothing to do.
template <Operation O, class T>
cudaError_t check(const RowParams& p, Call& call, bool& empty) {
  constexpr bool norm = is_norm(O);
  constexpr bool fused = O == Operation::fused_add_rmsnorm;
  constexpr bool row_results = gives_row_results(O);
  constexpr long long most = 2147483647;
  empty = false;
  if (p.version != RowParams::current_version) return cudaErrorInvalidValue;
  if (p.rows < 0 || p.cols < 0 || p.rows > most || p.cols > most) return cudaErrorInvalidValue;
  if ((!norm && (p.weight != nullptr || p.weight_plus_one)) || (O != Operation::layernorm && p.bias != nullptr))
    return cudaErrorInvalidValue;
  if (!fused && (p.residual != nullptr || p.residual_out != nullptr)) return cudaErrorInvalidValue;
  if (norm && !(p.eps >= 0.0f && p.eps < 3.4e38f)) return cudaErrorInvalidValue;
  RowArgs& a = call.args;
  const long long output_cols = row_results ? 2 : p.cols;
  const auto stride = [&](long long given) { return given == 0 ? p.cols : given; };
  a.input = p.input, a.residual = p.residual, a.weight = p.weight, a.bias = p.bias;
  a.output = p.output, a.residual_out = p.residual_out;
  a.rows = p.rows, a.cols = p.cols;
  a.input_stride = stride(p.input_stride), a.residual_stride = stride(p.residual_stride);
  a.output_stride = p.output_stride == 0 ? output_cols : p.output_stride;
  a.residual_out_stride = stride(p.residual_out_stride);
  a.eps = p.eps;
  a.weight_offset = p.weight_plus_one ? 1.0f : 0.0f;
  a.workspace = p.workspace;

  constexpr int count = fused ? 4 : 2;
  const void* const pointers[4] = {a.input, a.output, a.residual, a.residual_out};
  const long long strides[4] = {a.input_stride, a.output_stride, a.residual_stride, a.residual_out_stride};
  const long long cols[4] = {p.cols, output_cols, p.cols, p.cols};
  constexpr int bytes[4] = {T::bytes, row_results ? 4 : T::bytes, T::bytes, T::bytes};
  constexpr long long longest = (1LL << 62) / 4;
  for (int i = 0; i < count; ++i)
    if (strides[i] < cols[i] || (p.rows > 1 && strides[i] > longest / p.rows)) return cudaErrorInvalidValue;
  if (p.rows == 0 || p.cols == 0) {
    empty = true;
    return cudaSuccess;
  }
  std::uintptr_t all = 16, distances = 16;
  Extent extents[4];
  for (int i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointers[i]);
    if (address == 0 || address % bytes[i] != 0) return cudaErrorInvalidValue;
    extents[i] = {address, p.rows, strides[i] * bytes[i], cols[i] * bytes[i]};
    if (row_results && i == 1) continue;  // written a word at a time
    const auto step = p.rows > 1 ? static_cast<std::uintptr_t>(strides[i] * T::bytes) : 0;
    const auto first_step = p.rows > 1 ? static_cast<std::uintptr_t>(strides[0] * T::bytes) : 0;
    all |= address | step;
    distances |= (address ^ reinterpret_cast<std::uintptr_t>(pointers[0])) | (step ^ first_step);
  }
  for (const void* const weights : {a.weight, a.bias}) {
    const auto address = reinterpret_cast<std::uintptr_t>(weights);
    if (address == 0) continue;
    if (address % T::bytes != 0) return cudaErrorInvalidValue;
    all |= address;
    const Extent extent{address, 1, p.cols * T::bytes, p.cols * T::bytes};
    if (overlap(extents[1], extent) || (fused && overlap(extents[3], extent))) return cudaErrorInvalidValue;
  }
  // Outputs 1 and 3; inputs 0 and 2. In place is output on input, and the residual on itself.
  const auto same = [&](int i, int j) {
    return pointers[i] == pointers[j] && (strides[i] == strides[j] || p.rows == 1);
  };
  if ((row_results || !same(0, 1)) && overlap(extents[0], extents[1])) return cudaErrorInvalidValue;
  if (fused) {
    if (!same(2, 3) && overlap(extents[2], extents[3])) return cudaErrorInvalidValue;
    if (overlap(extents[1], extents[3]) || overlap(extents[1], extents[2]) || overlap(extents[0], extents[3]))
      return cudaErrorInvalidValue;
  }
  call.question = {p.rows, p.cols, T::bytes, static_cast<int>(all & (~all + 1)),
                   static_cast<int>(distances & (~distances + 1))};
  return cudaSuccess;
}

/// Checks and looks up. The kernel is number `answer.kernel` of the tuned ones, or of the base when that is negative.
struct Decision {
  Call call;
  Answer answer;
  int base = 0;
  long long workspace = 0;
  int device = 0, units = 0;
  bool empty = false;
};

template <Operation O, class T>
cudaError_t decide(const RowParams& p, Decision& d) {
  if (const cudaError_t error = check<O, T>(p, d.call, d.empty); error != cudaSuccess || d.empty) return error;
  const Device* device = nullptr;
  if (const cudaError_t error = current_device(d.device, device); error != cudaSuccess) return error;
  d.units = device->units;
  static std::atomic<int> known[most_devices];  // 0: not looked for yet; else 2 + the index of the table
  int table = known[d.device].load(std::memory_order_relaxed) - 2;
  if (table == -2) {
    table = table_of<O, T>(*device);
    known[d.device].store(table + 2, std::memory_order_relaxed);
  }
  d.answer = look_up<O, T>(table, d.call.question, p.weight != nullptr, p.bias != nullptr);
  Match match;
  match.kind = d.answer.kind;
  const Kernel* kernel = nullptr;
  if (d.answer.kernel >= 0) {
    kernel = &Tuned<O, T>::kernels[d.answer.kernel];
    match.config = Tuned<O, T>::configs[d.answer.kernel];
    match.promised_us = d.answer.entry != nullptr ? d.answer.entry->time_us : 0.0f;
    d.workspace = workspace_of(*kernel, p.rows);
  } else {
    d.base = Base<O, T>::choose(d.call.question);
    kernel = &Base<O, T>::kernels[d.base];
    match.config = Base<O, T>::name(d.base);
  }
  match.vector_width = kernel->vector;
  match.narrowed = kernel->vector < Base<O, T>::widest && d.call.question.congruence < 16;
  if (p.match != nullptr) *p.match = match;
  return cudaSuccess;
}

template <Operation O, class T>
cudaError_t launch_tuned(const Decision& d, const RowArgs* args, cudaStream_t stream) {
  if constexpr (Tuned<O, T>::kernel_count > 0)
    return launch_number<T, O, TunedSource<O, T>>(
        d.answer.kernel, std::make_integer_sequence<int, Tuned<O, T>::kernel_count>{}, args, stream, d.device, d.units);
  return cudaErrorInvalidValue;
}

}  // namespace dispatch

/// Bytes of workspace that this call needs (see above); 0 for most shapes, and where the parameters are wrong, which
/// the launch will say. `p.workspace` is not looked at.
template <dispatch::Operation O, class T>
std::size_t workspace_bytes(const RowParams& p) {
  dispatch::Decision d;
  RowParams silent = p;
  silent.match = nullptr;
  if (dispatch::decide<O, T>(silent, d) != cudaSuccess) return 0;
  return static_cast<std::size_t>(d.workspace);
}

/// Checks, looks up, launches. cudaErrorInvalidValue: a parameter is wrong, or the workspace is missing, misaligned or
/// too small; nothing was launched. Other errors are the runtime's. No rows or no columns: success, nothing touched.
template <dispatch::Operation O, class T>
cudaError_t launch(const RowParams& p) {
  dispatch::Decision d;
  if (const cudaError_t error = dispatch::decide<O, T>(p, d); error != cudaSuccess || d.empty) return error;
  if (d.workspace > 0 && (p.workspace == nullptr || reinterpret_cast<std::uintptr_t>(p.workspace) % 16 != 0 ||
                          p.workspace_bytes < static_cast<std::size_t>(d.workspace)))
    return cudaErrorInvalidValue;
  if (d.answer.kernel >= 0) return dispatch::launch_tuned<O, T>(d, &d.call.args, p.stream);
  return dispatch::launch_number<T, O, dispatch::Base<O, T>>(
      d.base, std::make_integer_sequence<int, dispatch::Base<O, T>::kernel_count>{}, &d.call.args, p.stream, d.device,
      d.units);
}

/// Loads every kernel of this operation and dtype that the current device may be asked for: before a capture, or before
/// the first call that must be quick.
template <dispatch::Operation O, class T>
cudaError_t prepare() {
  dispatch::Decision d;
  const dispatch::Device* device = nullptr;
  if (const cudaError_t error = dispatch::current_device(d.device, device); error != cudaSuccess) return error;
  d.units = device->units;
  if (const int table = dispatch::table_of<O, T>(*device); table >= 0) {
    const dispatch::Table& t = dispatch::Tuned<O, T>::tables[table];
    for (d.answer.kernel = t.first_kernel; d.answer.kernel < t.first_kernel + t.kernel_count; ++d.answer.kernel)
      if (const cudaError_t error = dispatch::launch_tuned<O, T>(d, nullptr, nullptr); error != cudaSuccess)
        return error;
  }
  using Base = dispatch::Base<O, T>;
  for (int i = 0; i < Base::kernel_count; ++i)
    if (const cudaError_t error = dispatch::launch_number<T, O, Base>(
            i, std::make_integer_sequence<int, Base::kernel_count>{}, nullptr, nullptr, d.device, d.units);
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

/// T is rowtune::f32, rowtune::f16 or rowtune::bf16.
template <class T>
cudaError_t softmax(const RowParams& p) {
  return launch<dispatch::Operation::softmax, T>(p);
}
template <class T>
cudaError_t log_softmax(const RowParams& p) {
  return launch<dispatch::Operation::log_softmax, T>(p);
}
template <class T>
cudaError_t layernorm(const RowParams& p) {
  return launch<dispatch::Operation::layernorm, T>(p);
}
template <class T>
cudaError_t rmsnorm(const RowParams& p) {
  return launch<dispatch::Operation::rmsnorm, T>(p);
}
template <class T>
cudaError_t fused_add_rmsnorm(const RowParams& p) {
  return launch<dispatch::Operation::fused_add_rmsnorm, T>(p);
}
/// The output is rows x 2 words of 32 bits: for each row the index of its largest element (int) and its log-sum-exp
/// (float); `output_stride` counts words, 0 is 2. The index is that of the first NaN, else of the first of the largest;
/// the log-sum-exp is NaN if any element is, else +inf if any is, else -inf where all are. Never in place.
template <class T>
cudaError_t argmax_logsumexp(const RowParams& p) {
  return launch<dispatch::Operation::argmax_logsumexp, T>(p);
}

}  // namespace rowtune
