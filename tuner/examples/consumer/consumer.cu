// A user of a dispatch table: calls one operation and dtype through the generated header, checks every answer against a
// double-precision reference on the host, and times the tuned shapes beside what the table promised.
//
//   nvcc -std=c++17 -fmad=false -arch=native -I INCLUDE -I TABLE -DOPERATION=softmax -DDTYPE=bf16 consumer.cu
//   ./a.out                 everything, on every GPU; exits 1 when a result is wrong
//   ./a.out --without-gpu   only what needs none: arguments that must be refused, and the look-up

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "rowtune_dispatch.cuh"

#ifndef OPERATION
#define OPERATION softmax
#endif
#ifndef DTYPE
#define DTYPE bf16
#endif
#define TEXT_OF(x) #x
#define NAME_OF(x) TEXT_OF(x)

#include "matrices.cuh"

namespace {

using rowtune::Match;
using rowtune::RowParams;
using rowtune::dispatch::MatchKind;
using rowtune::dispatch::Operation;

constexpr Operation op = Operation::OPERATION;
constexpr bool is_softmax = op == Operation::softmax || op == Operation::log_softmax;
constexpr bool is_norm = rowtune::dispatch::is_norm(op);
constexpr bool gives_row_results = rowtune::dispatch::gives_row_results(op);
constexpr bool is_fused = op == Operation::fused_add_rmsnorm;
constexpr bool has_bias = op == Operation::layernorm;
using Tuned = rowtune::dispatch::Tuned<op, T>;

struct Case {
  long long rows, cols, stride, offset, output_stride, output_offset;
  bool in_place, weight, bias, plus_one;
  std::string name() const {
    char text[200];
    std::snprintf(text, sizeof text, "%lldx%lld ld=%lld off=%lld out:ld=%lld off=%lld%s%s%s%s", rows, cols, stride,
                  offset, output_stride, output_offset, in_place ? " in place" : "", weight ? " weight" : "",
                  bias ? " bias" : "", plus_one ? " 1+w" : "");
    return text;
  }
};

/// Reference of one row, from the rounded inputs.
void reference(const std::vector<double>& x, const std::vector<double>& weight, const std::vector<double>& bias,
               double eps, std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  if constexpr (is_softmax) {
    const double max = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const double v : x) sum += std::exp(v - max);
    for (std::size_t j = 0; j < x.size(); ++j)
      y[j] = op == Operation::softmax ? std::exp(x[j] - max) / sum : x[j] - max - std::log(sum);
  } else {
    double mean = 0, squares = 0;
    if (op == Operation::layernorm) {
      for (const double v : x) mean += v;
      mean /= n;
    }
    for (const double v : x) squares += (v - mean) * (v - mean);
    const double rstd = 1 / std::sqrt(squares / n + eps);
    for (std::size_t j = 0; j < x.size(); ++j) y[j] = (x[j] - mean) * rstd * weight[j] + bias[j];
  }
}

/// Half an ulp of the dtype, and the error of fp32 arithmetic in between.
double tolerance(double y) {
  const double scale = op == Operation::softmax ? std::fabs(y) : std::max(1.0, std::fabs(y));
  return H::half_ulp * std::fabs(y) + 4e-6 * scale + H::least;
}

struct Workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
  void need(std::size_t n) {
    if (n <= bytes) return;
    cudaFree(data);
    require(cudaMalloc(&data, n), "allocating the workspace");
    require(cudaMemset(data, 0, n), "clearing the workspace");
    bytes = n;
  }
  ~Workspace() { cudaFree(data); }
};

cudaError_t call(RowParams& p, Workspace& workspace) {
  workspace.need(rowtune::workspace_bytes<op, T>(p));
  p.workspace = workspace.data, p.workspace_bytes = workspace.bytes;
  return rowtune::OPERATION<T>(p);
}

/// Runs one case and checks rows `step` apart, the first and the last among them, and everything around the outputs.
Match check_tensors(const Case& c, Workspace& workspace, long long step) {
  Matrix input(c.rows, c.cols, c.stride, c.offset, 0),
      residual(is_fused ? c.rows : 1, is_fused ? c.cols : 1, is_fused ? c.stride : 1, c.offset, 1);
  Matrix weight(1, c.cols, c.cols, 0, 2), bias(1, c.cols, c.cols, 0, 3);
  const bool own = !c.in_place;
  Matrix output(own ? c.rows : 1, own ? c.cols : 1, own ? c.output_stride : 1, c.output_offset, -1);
  Matrix residual_out(own && is_fused ? c.rows : 1, own && is_fused ? c.cols : 1, own && is_fused ? c.output_stride : 1,
                      c.output_offset, -1);
  Match match;
  RowParams p;
  p.input = input.data(), p.output = own ? output.data() : input.data();
  if (is_fused) p.residual = residual.data(), p.residual_out = own ? residual_out.data() : residual.data();
  if (c.weight) p.weight = weight.data();
  if (c.bias) p.bias = bias.data();
  p.weight_plus_one = c.plus_one;
  p.rows = c.rows, p.cols = c.cols;
  p.input_stride = p.residual_stride = c.stride;
  p.output_stride = p.residual_out_stride = own ? c.output_stride : c.stride;
  p.eps = 1e-5f;
  p.match = &match;
  const cudaError_t error = call(p, workspace);
  if (error != cudaSuccess) {
    fail(c.name() + ": " + cudaGetErrorString(error));
    return match;
  }
  require(cudaDeviceSynchronize(), c.name().c_str());

  Matrix& out = own ? output : input;
  Matrix& res = own ? residual_out : residual;
  auto now = out.download(), sums = res.download();
  std::vector<double> x(static_cast<std::size_t>(c.cols)), y(x.size()), w(x.size(), 1), b(x.size(), 0);
  for (std::size_t j = 0; j < x.size(); ++j) {
    const auto at = static_cast<long long>(j);
    if (c.weight) w[j] = H::to(weight.at(0, at)) + (c.plus_one ? 1.0 : 0.0);
    if (c.bias) b[j] = H::to(bias.at(0, at));
  }
  const auto place = [](const Matrix& m, long long i, long long j) {
    return static_cast<std::size_t>(Matrix::guard + m.offset + i * m.stride + j);
  };
  for (long long i = 0; i < c.rows; i = i == c.rows - 1 ? c.rows : std::min(i + step, c.rows - 1)) {
    for (long long j = 0; j < c.cols; ++j) {
      const Element h = value(0, i, j, c.cols);
      x[static_cast<std::size_t>(j)] = H::to(h);
      if (!is_fused) continue;
      const Element sum = H::of(H::to(h) + H::to(value(1, i, j, c.cols)));
      x[static_cast<std::size_t>(j)] = H::to(sum);
      if (std::memcmp(&sum, &sums[place(res, i, j)], sizeof sum) != 0)
        return fail(c.name() + ": residual at row " + std::to_string(i) + ", column " + std::to_string(j)), match;
    }
    reference(x, w, b, p.eps, y);
    for (long long j = 0; j < c.cols; ++j) {
      const double got = H::to(now[place(out, i, j)]), want = y[static_cast<std::size_t>(j)];
      if (!(std::fabs(got - want) <= tolerance(want))) {
        char text[160];
        std::snprintf(text, sizeof text, ": row %lld, column %lld is %.9g, not %.9g (%s)", i, j, got, want,
                      match.config);
        return fail(c.name() + text), match;
      }
    }
  }
  // Guards, and the gaps between rows, are as they were.
  for (auto [matrix, content] : {std::pair(&out, &now), std::pair(&res, &sums)}) {
    if (matrix == &res && !is_fused) continue;
    for (long long i = 0; i < matrix->rows; ++i)
      std::copy_n(matrix->host.begin() + static_cast<std::ptrdiff_t>(place(*matrix, i, 0)), matrix->cols,
                  content->begin() + static_cast<std::ptrdiff_t>(place(*matrix, i, 0)));
    if (std::memcmp(content->data(), matrix->host.data(), matrix->bytes()) != 0)
      fail(c.name() + ": wrote outside the rows");
  }
  return match;
}

/// The same for argmax_logsumexp: rows with and without a spike (then several elements may be the largest), and some
/// with elements that are no numbers or not finite. The output's rows are as far apart as the case's, beyond 2 words.
Match check_row_results(const Case& c, Workspace& workspace, long long step) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Matrix input(c.rows, c.cols, c.stride, c.offset, 0);
  for (long long i = 0; i < c.rows; ++i)
    for (long long j = 0; j < c.cols; ++j) {
      if (i % 2 == 1) input.at(i, j) = value(1, i, j, c.cols);
      if (i % 8 == 2 && (j == c.cols / 3 || j == c.cols - 1)) input.at(i, j) = H::of(std::nanf(""));
      if (i % 8 == 3 && j == c.cols / 2) input.at(i, j) = H::of(static_cast<float>(infinity));
      if (i % 8 == 4) input.at(i, j) = H::of(static_cast<float>(-infinity));
    }
  input.upload();
  MatrixOf<std::int32_t> output(c.rows, 2, 2 + c.output_stride - c.cols, c.output_offset, -77);
  Match match;
  RowParams p;
  p.input = input.data(), p.output = output.data();
  p.rows = c.rows, p.cols = c.cols;
  p.input_stride = c.stride, p.output_stride = output.stride;
  p.match = &match;
  if (const cudaError_t error = call(p, workspace); error != cudaSuccess)
    return fail(c.name() + ": " + cudaGetErrorString(error)), match;
  require(cudaDeviceSynchronize(), c.name().c_str());

  auto now = output.download();
  const auto place = [&](long long i, long long j) {
    return static_cast<std::size_t>(output.guard + output.offset + i * output.stride + j);
  };
  for (long long i = 0; i < c.rows; i = i == c.rows - 1 ? c.rows : std::min(i + step, c.rows - 1)) {
    long long index = 0;
    const auto x = [&](long long j) { return static_cast<double>(H::to(input.at(i, j))); };
    for (long long j = 1; j < c.cols && !std::isnan(x(index)); ++j)
      if (std::isnan(x(j)) || x(j) > x(index)) index = j;
    double sum = 0, want = x(index);
    for (long long j = 0; j < c.cols; ++j) sum += std::exp(x(j) - want);
    if (std::isfinite(want)) want += std::log(sum);
    float got = 0;
    std::memcpy(&got, &now[place(i, 1)], sizeof got);
    const bool right = std::isnan(want) ? std::isnan(got)
                                        : got == want || std::fabs(got - want) <= 4e-6 * std::max(1.0, std::fabs(want));
    if (now[place(i, 0)] == index && right) continue;
    char text[200];
    std::snprintf(text, sizeof text, ": row %lld gives %d and %.9g, not %lld and %.9g (%s)", i, now[place(i, 0)], got,
                  index, want, match.config);
    return fail(c.name() + text), match;
  }
  for (long long i = 0; i < c.rows; ++i) now[place(i, 0)] = now[place(i, 1)] = -77;
  if (now != output.host) fail(c.name() + ": wrote outside the rows");
  return match;
}

Match check(const Case& c, Workspace& workspace, long long step = 1) {
  return gives_row_results ? check_row_results(c, workspace, step) : check_tensors(c, workspace, step);
}

// ------------------------------------------------------------------------------------------------------- parts

/// Needs no GPU: what is wrong is refused before a device is asked for anything.
void check_arguments() {
  std::printf("arguments that must be refused\n");
  alignas(16) static char memory[4096];
  const auto good = [] {
    RowParams p;
    p.input = memory, p.output = memory + 1024, p.rows = 2, p.cols = 8;
    if (is_fused) p.residual = memory + 2048, p.residual_out = memory + 3072;
    return p;
  };
  const auto expect = [&](const char* what, RowParams p, cudaError_t error) {
    const cudaError_t got = rowtune::OPERATION<T>(p);
    if (got != error) fail(std::string(what) + " gives " + cudaGetErrorName(got));
  };
  RowParams p = good();
  p.version = 99, expect("another version", p, cudaErrorInvalidValue);
  p = good(), p.rows = -1, expect("negative rows", p, cudaErrorInvalidValue);
  p = good(), p.cols = 1LL << 31, expect("too many columns", p, cudaErrorInvalidValue);
  p = good(), p.input = nullptr, expect("no input", p, cudaErrorInvalidValue);
  p = good(), p.output = nullptr, expect("no output", p, cudaErrorInvalidValue);
  p = good(), p.input_stride = 7, expect("a stride below the columns", p, cudaErrorInvalidValue);
  p = good(), p.output = memory + 1, expect("an output between elements", p, cudaErrorInvalidValue);
  p = good(), p.output = memory + T::bytes, expect("an output over the input", p, cudaErrorInvalidValue);
  p = good(), p.eps = -1;
  if (is_norm) expect("a negative eps", p, cudaErrorInvalidValue);
  p = good(), p.output = memory;
  if (gives_row_results) expect("results of rows over the rows", p, cudaErrorInvalidValue);
  p = good(), p.output_stride = gives_row_results ? 1 : 7;
  expect("an output stride below its columns", p, cudaErrorInvalidValue);
  p = good(), p.output = memory + 1026;
  if (gives_row_results) expect("an output between its words", p, cudaErrorInvalidValue);
  p = good(), p.bias = memory;
  if (!has_bias) expect("a bias that the operation lacks", p, cudaErrorInvalidValue);
  p = good(), p.weight = p.output, expect("weights in the output", p, cudaErrorInvalidValue);
  p = good(), p.residual = is_fused ? nullptr : memory,
  expect("a residual too few or too many", p, cudaErrorInvalidValue);
  p = good(), p.rows = 0, expect("no rows", p, cudaSuccess);
  p = good(), p.cols = 0, p.input = p.output = nullptr, expect("no columns", p, cudaSuccess);
}

void check_lookup() {
  std::printf("look-up\n");
  for (int t = 0; t < Tuned::table_count; ++t) {
    const auto& table = Tuned::tables[t];
    for (int i = 0; i < table.entry_count; ++i) {
      const auto& e = table.entries[i];
      const auto a = rowtune::dispatch::look_up<op, T>(t, {e.rows, e.cols, T::bytes, e.alignment, 16});
      if (a.kind != MatchKind::exact || a.entry != &e) fail("a tuned shape is not found");
    }
    // Nanoseconds of a look-up, over shapes that are tuned and shapes that are not.
    constexpr int rounds = 200;
    unsigned sum = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < table.entry_count; ++i) {
        const auto& e = table.entries[i];
        sum += static_cast<unsigned>(
            rowtune::dispatch::look_up<op, T>(t, {e.rows + round % 2, e.cols, T::bytes, e.alignment, 16}).kernel);
      }
    const double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    std::printf("  %d entries, %.1f ns a look-up (%u)\n", table.entry_count, ns / (rounds * table.entry_count),
                sum % 2);
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const long long shapes[][2] = {{1, 1},    {3, 2},    {5, 16},    {33, 17},   {64, 63},   {130, 100},  {3, 255},
                                 {5, 257},  {4, 1000}, {7, 1023},  {5, 1024},  {5, 1025},  {3, 4095},   {2, 4096},
                                 {2, 4097}, {3, 8193}, {2, 32000}, {3, 32001}, {1, 50257}, {2, 131073}, {1, 1048577}};
  int number = 0;
  for (const auto& shape : shapes) {
    const long long rows = shape[0], cols = shape[1];
    const auto add = [&](long long stride, long long offset, long long out_stride, long long out_offset,
                         bool in_place) {
      // Options in turn, so that all of them meet all kinds of shapes.
      const int options = number++ % 4;
      const bool weight = is_norm && options != 1, bias = has_bias && options != 1 && options != 2;
      all.push_back({rows, cols, stride, offset, out_stride, out_offset, in_place && !gives_row_results, weight, bias,
                     weight && options == 3});
    };
    const long long whole = (cols + 15) / 16 * 16;
    for (int again = 0; again < 4; ++again) add(cols, 0, cols, 0, false);  // with each set of options
    add(cols, 0, cols, 0, true);
    add(whole, 0, whole, 0, false);
    add(cols + 1, 0, cols + 1, 0, false);
    add(cols, 1, cols, 1, false);  // misaligned alike
    add(cols + 3, 3, cols + 3, 3, true);
    add(whole, 0, whole, 1, false);  // misaligned apart: narrower accesses
    add(whole, 4, whole + 16, 0, false);
    add(cols + 1, 0, cols + 2, 0, false);
  }
  return all;
}

/// Median microseconds of a launch in a graph over slots that together exceed the cache several times.
double time_cold(const rowtune::dispatch::Entry& e, Workspace& workspace, int device) {
  cudaDeviceProp properties;
  require(cudaGetDeviceProperties(&properties, device), "reading the device");
  const long long bytes = static_cast<long long>(e.rows) * e.cols * T::bytes;
  const long long pitch = (std::max(bytes, 8LL * e.rows) + 511) / 256 * 256,
                  weights = (e.cols * T::bytes + 511LL) / 256 * 256;
  const long long slot = 2 * pitch + 2 * weights;
  const long long slots = std::min(1000LL, std::max(2LL, 5LL * properties.l2CacheSize / slot + 1));
  char* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(slot * slots)) != cudaSuccess) return cudaGetLastError(), 0;
  // Data like the tuner's: a GPU that moves zeros draws less power and clocks higher.
  const auto total = static_cast<std::size_t>(slot * slots);
  std::vector<Element> pattern(std::min<std::size_t>(total, 1 << 22) / sizeof(Element));
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = value(0, 0, static_cast<long long>(i), 1);
  std::size_t filled = pattern.size() * sizeof(Element);
  require(cudaMemcpy(memory, pattern.data(), filled, cudaMemcpyHostToDevice), "filling");
  while (filled < total) {
    const std::size_t more = std::min(filled, total - filled);
    require(cudaMemcpy(memory + filled, memory, more, cudaMemcpyDeviceToDevice), "filling");
    filled += more;
  }
  cudaStream_t stream;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  const auto enqueue = [&](long long i) {
    char* at = memory + slot * (i % slots);
    RowParams p;
    p.rows = e.rows, p.cols = e.cols, p.stream = stream;
    p.input = at, p.output = is_fused ? at : at + pitch;
    if (is_fused) p.residual = p.residual_out = at + pitch;
    if (Tuned::weight) p.weight = at + 2 * pitch;
    if (Tuned::bias) p.bias = at + 2 * pitch + weights;
    return call(p, workspace);
  };
  require(enqueue(0), "launching");
  require(cudaStreamSynchronize(stream), "running");
  const long long launches =
      std::max(slots, std::min(1000LL, 1LL + static_cast<long long>(1000 / (1.2 + bytes * 2 / 4e6))));
  cudaGraph_t graph;
  cudaGraphExec_t runnable;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capturing");
  for (long long i = 0; i < launches; ++i) require(enqueue(i), "launching into a graph");
  require(cudaStreamEndCapture(stream, &graph), "capturing");
  require(cudaGraphInstantiate(&runnable, graph, 0), "making a graph");
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "making an event");
  require(cudaEventCreate(&end), "making an event");
  std::vector<double> times;
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  while (seconds() < 0.25 || times.size() < 15) {
    require(cudaEventRecord(begin, stream), "timing");
    require(cudaGraphLaunch(runnable, stream), "replaying");
    require(cudaEventRecord(end, stream), "timing");
    require(cudaEventSynchronize(end), "timing");
    float ms = 0;
    require(cudaEventElapsedTime(&ms, begin, end), "timing");
    if (seconds() > 0.1) times.push_back(ms * 1e3 / static_cast<double>(launches));  // after a warm-up
  }
  cudaGraphExecDestroy(runnable), cudaGraphDestroy(graph);
  cudaEventDestroy(begin), cudaEventDestroy(end), cudaStreamDestroy(stream), cudaFree(memory);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void check_threads() {
  std::printf("four threads at once\n");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      Workspace workspace;
      for (int i = 0; i < 10; ++i) check({33, 257, 257, 0, 257, 0, false, false, false, false}, workspace);
    });
  for (auto& thread : threads) thread.join();
}

void check_device(int device) {
  cudaDeviceProp properties;
  require(cudaSetDevice(device), "choosing a device");
  require(cudaGetDeviceProperties(&properties, device), "reading the device");
  std::printf("device %d: %s\n", device, properties.name);
  const auto start = std::chrono::steady_clock::now();
  require((rowtune::prepare<op, T>()), "loading the kernels");
  std::printf("  %d tuned kernels loaded in %.2f s\n", Tuned::kernel_count,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  Workspace workspace;
  int kinds[5] = {};
  int narrowed = 0, count = 0;
  for (const auto& c : cases()) {
    const Match match = check(c, workspace, c.rows > 64 ? 7 : 1);
    ++kinds[static_cast<int>(match.kind)], narrowed += match.narrowed, ++count;
  }
  std::printf(
      "  %d cases: %d exact, %d near, %d out of range, %d other device, %d not tuned; %d with narrower accesses\n",
      count, kinds[0], kinds[1], kinds[2], kinds[3], kinds[4], narrowed);
  if (device > 0) return;
  check_threads();

  std::printf("tuned shapes, cold: microseconds, and what the table promised\n");
  std::printf("  %-16s %9s %9s %7s  %s\n", "shape", "measured", "promised", "ratio", "config");
  int timed = 0, close = 0;
  for (int t = 0; t < Tuned::table_count; ++t) {
    for (int i = 0; i < Tuned::tables[t].entry_count; ++i) {
      const auto& e = Tuned::tables[t].entries[i];
      if (e.alignment != 16 && static_cast<long long>(e.cols) * T::bytes % 16 == 0) continue;  // tuned with an offset
      const Case c{e.rows, e.cols, e.cols, 0, e.cols, 0, is_fused, Tuned::weight, Tuned::bias, false};
      constexpr long long most_checked = 1LL << 24;  // elements: the host's reference takes its time
      if (c.rows * c.cols <= most_checked) {
        const Match match = check(c, workspace, std::max(1, e.rows / 50));
        if (match.kind != MatchKind::exact) {
          std::printf("  %lldx%lld: %s\n", c.rows, c.cols, rowtune::dispatch::describe(match.kind));
          continue;
        }
      }
      const double us = time_cold(e, workspace, device);
      const double ratio = us / e.time_us;
      ++timed, close += ratio <= 1.03;
      std::printf("  %-16s %9.2f %9.2f %7.3f  %s\n", (std::to_string(e.rows) + "x" + std::to_string(e.cols)).c_str(),
                  us, e.time_us, ratio, e.kernel < 0 ? "base" : Tuned::configs[e.kernel]);
    }
  }
  std::printf("  %d of %d within 3 %% of the promise\n", close, timed);
}

}  // namespace

int main(int count, char** arguments) {
  std::printf("%s %s\n", NAME_OF(OPERATION), NAME_OF(DTYPE));
  check_arguments();
  check_lookup();
  if (count > 1 && std::string(arguments[1]) == "--without-gpu") {
    std::printf("%s\n", failures == 0 ? "all right" : "WRONG");
    return failures == 0 ? 0 : 1;
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("no GPU here: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 3;
  }
  for (int device = 0; device < devices; ++device) check_device(device);
  std::printf("%s: %d wrong\n", failures == 0 ? "all right" : "WRONG", failures);
  return failures == 0 ? 0 : 1;
}
