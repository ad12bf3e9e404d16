#include "kernels/cuda/slots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace rowtune::cuda {
namespace {

constexpr std::int64_t guard = 256;

/// Bytes of a tensor of the workload's shape, from its first element to its last.
std::int64_t matrix_bytes(const Workload& w) {
  const Shape& s = w.shape;
  return s.rows == 0 || s.cols == 0 ? 0 : ((s.rows - 1) * s.ld + s.cols) * size_of(w.dtype);
}
bool is_matrix(Slots::Tensor t) { return t != Slots::weight && t != Slots::bias; }
bool is_row_results(const Workload& w, Slots::Tensor t) { return t == Slots::output && gives_row_results(w.op); }

std::int64_t pitch_of(const Workload& w, Slots::Tensor t) {
  std::int64_t data = is_matrix(t) ? matrix_bytes(w) + w.shape.off * size_of(w.dtype) : w.shape.cols * size_of(w.dtype);
  if (is_row_results(w, t)) data = output_form(w).shape.rows * output_form(w).shape.cols * output_form(w).element_bytes;
  return (data + 2 * guard + 255) / 256 * 256;
}

bool needed(const Workload& w, Slots::Tensor t) {
  const bool fused = w.op == Operation::fused_add_rmsnorm;
  switch (t) {
    case Slots::input:
      return true;
    case Slots::residual:
      return fused;
    case Slots::weight:
      return w.options.weight;
    case Slots::bias:
      return w.options.bias;
    case Slots::output:
      return !w.options.in_place;
    default:
      return fused && !w.options.in_place;
  }
}

const char* oracle_operation(Operation op) {
  switch (op) {
    case Operation::copy:
      return "oracle_copy";
    case Operation::softmax:
      return "oracle_softmax";
    case Operation::log_softmax:
      return "oracle_log_softmax";
    case Operation::layernorm:
      return "oracle_layernorm";
    case Operation::argmax_logsumexp:
      return "oracle_argmax_logsumexp";
    default:
      return "oracle_rmsnorm";
  }
}

enum { kernel_fill, kernel_guards, kernel_check, kernel_flush };

dim3 grid_over(std::int64_t elements, std::int64_t slots) {
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>((elements + 1023) / 1024, 1, 4096)),
              static_cast<unsigned>(slots), 1);
}

}  // namespace

std::string oracle_source(const Workload& w) {
  return fmt::format(
      "#include \"rowtune/oracle.cuh\"\n"
      "using T = rowtune::{};\n"
      "extern \"C\" __global__ void rowtune_fill(const rowtune::TensorPlace t, int tensor) {{ "
      "rowtune::fill_tensor<T>(t, tensor); }}\n"
      "extern \"C\" __global__ void rowtune_guards(const rowtune::TensorPlace t, rowtune::OracleResult* r) {{ "
      "rowtune::check_guards<T>(t, r); }}\n"
      "extern \"C\" __global__ void rowtune_check(const rowtune::OracleArgs a) {{ rowtune::check_rows<T, "
      "rowtune::{}>(a); }}\n"
      "extern \"C\" __global__ void rowtune_flush(const rowtune::Words4* p, long long n, unsigned* never) {{ "
      "rowtune::flush_by_reading(p, n, never); }}\n",
      to_string(w.dtype), oracle_operation(w.op));
}

Slots::Slots(const Workload& workload, std::int64_t count) : workload_(workload), count_(count) {
  for (int i = 0; i < tensors; ++i) {
    const auto t = static_cast<Tensor>(i);
    if (!needed(workload, t)) continue;
    pitch_[t] = pitch_of(workload, t);
    buffers_[t] = DeviceBuffer(pitch_[t] * count);
  }
}

std::int64_t Slots::bytes_of_slot(const Workload& workload) {
  std::int64_t bytes = 0;
  for (int i = 0; i < tensors; ++i)
    if (needed(workload, static_cast<Tensor>(i))) bytes += pitch_of(workload, static_cast<Tensor>(i));
  return bytes;
}

TensorPlace Slots::place(Tensor t) const {
  const Shape& s = workload_.shape;
  if (!has(t)) return {};
  if (is_row_results(workload_,
                     t)) {  // told in elements of the workload's type, as the kernels that fill and guard want it
    const OutputForm form = output_form(workload_);
    const std::int64_t cols = form.shape.cols * form.element_bytes / size_of(workload_.dtype);
    return {buffers_[t].data(), pitch_[t], guard, form.shape.rows, cols, cols};
  }
  if (!is_matrix(t)) return {buffers_[t].data(), pitch_[t], guard, 1, s.cols, std::max<std::int64_t>(1, s.cols)};
  return {buffers_[t].data(),
          pitch_[t],
          guard + s.off * size_of(workload_.dtype),
          s.rows,
          s.cols,
          std::max<std::int64_t>(1, s.ld)};
}

Slots::Tensor Slots::result_tensor() const { return workload_.options.in_place ? input : output; }
Slots::Tensor Slots::residual_result_tensor() const { return workload_.options.in_place ? residual : residual_out; }

RowArgs Slots::args(std::int64_t slot) const {
  const auto at = [&](Tensor t) -> void* {
    if (!has(t)) return nullptr;
    const TensorPlace p = place(t);
    return static_cast<char*>(p.base) + slot * p.bytes + p.first;
  };
  RowArgs a{};
  const Shape& s = workload_.shape;
  a.input = at(input);
  a.residual = at(residual);
  a.weight = at(weight);
  a.bias = at(bias);
  a.output = at(result_tensor());
  if (workload_.op == Operation::fused_add_rmsnorm) a.residual_out = at(residual_result_tensor());
  a.rows = s.rows;
  a.cols = s.cols;
  a.input_stride = a.residual_stride = a.output_stride = a.residual_out_stride = s.ld;
  if (is_row_results(workload_, output)) a.output_stride = output_form(workload_).shape.ld;
  a.eps = static_cast<float>(workload_.options.eps);
  if (workload_.op == Operation::copy && s.contiguous()) {  // one long row
    a.rows = s.rows * s.cols == 0 ? 0 : 1;
    a.cols = s.rows * s.cols;
  }
  return a;
}

OracleKernels::OracleKernels(const Workload& w, const std::function<Binary(const std::string&)>& compile)
    : kernels_(compile(oracle_source(w)).cubin, {"rowtune_fill", "rowtune_guards", "rowtune_check", "rowtune_flush"}),
      result_(sizeof(OracleResult)) {}

void OracleKernels::fill_tensor(const Slots& slots, Slots::Tensor t, int test_tensor, std::int64_t count,
                                const Stream& stream) const {
  if (!slots.has(t) || count == 0) return;
  TensorPlace place = slots.place(t);
  constexpr std::int64_t most = 65535;  // of grid.y
  for (std::int64_t first = 0; first < count; first += most) {
    TensorPlace part = place;
    part.base = static_cast<char*>(place.base) + first * place.bytes;
    void* args[] = {&part, &test_tensor};
    kernels_.launch(kernel_fill,
                    grid_over(place.bytes / size_of(slots.workload().dtype), std::min(most, count - first)), 256, args,
                    stream);
  }
}

namespace {
enum : int { poison = 0, values_input = 1, values_residual = 2, values_weight = 3, values_bias = 4 };
}

void OracleKernels::fill(const Slots& slots, const Stream& stream) const {
  fill_tensor(slots, Slots::input, values_input, slots.count(), stream);
  fill_tensor(slots, Slots::residual, values_residual, slots.count(), stream);
  fill_tensor(slots, Slots::weight, values_weight, slots.count(), stream);
  fill_tensor(slots, Slots::bias, values_bias, slots.count(), stream);
  fill_tensor(slots, Slots::output, poison, slots.count(), stream);
  fill_tensor(slots, Slots::residual_out, poison, slots.count(), stream);
}

void OracleKernels::restore(const Slots& slots, std::int64_t count, const Stream& stream) const {
  if (slots.workload().options.in_place) {
    fill_tensor(slots, Slots::input, values_input, count, stream);
    fill_tensor(slots, Slots::residual, values_residual, count, stream);
  } else {
    fill_tensor(slots, Slots::output, poison, count, stream);
    fill_tensor(slots, Slots::residual_out, poison, count, stream);
  }
}

Verification OracleKernels::check(const Slots& slots, double depth, const Stream& stream) const {
  const Workload& w = slots.workload();
  OracleArgs a{};
  a.output = slots.place(slots.result_tensor());
  if (w.op == Operation::fused_add_rmsnorm) a.residual_out = slots.place(slots.residual_result_tensor());
  a.rows = w.shape.rows;
  a.cols = w.shape.cols;
  a.eps = static_cast<float>(w.options.eps);
  a.depth = depth;
  a.has_weight = w.options.weight;
  a.has_bias = w.options.bias;
  a.adds_residual = w.op == Operation::fused_add_rmsnorm;
  a.result = static_cast<OracleResult*>(result_.data());
  OracleResult result{0, std::numeric_limits<unsigned long long>::max(), 0, 0};
  check_copy(result_.data(), &result, sizeof result, true, stream);
  if (a.rows > 0 && a.cols > 0) {
    void* args[] = {&a};
    kernels_.launch(kernel_check, dim3(static_cast<unsigned>(std::min<std::int64_t>(a.rows, 8192))), 256, args, stream);
  }
  for (int i = 0; i < Slots::tensors; ++i) {
    if (!slots.has(static_cast<Slots::Tensor>(i))) continue;
    TensorPlace place = slots.place(static_cast<Slots::Tensor>(i));
    OracleResult* into = a.result;
    void* args[] = {&place, &into};
    kernels_.launch(kernel_guards, grid_over(place.bytes / size_of(w.dtype), 1), 256, args, stream);
  }
  check_copy(&result, result_.data(), sizeof result, false, stream);
  stream.wait("running and checking the kernel");

  Verification v;
  v.max_error_ulp = static_cast<double>(std::bit_cast<float>(result.max_error_ulp));
  v.right = result.wrong == 0 && result.guards == 0;
  if (result.wrong > 0) {
    const auto first = static_cast<std::int64_t>(result.first_wrong);
    v.what = fmt::format(
        "{} of {} elements are outside their tolerance, the first at row {}, column {}; largest error {:.3g} ulp",
        result.wrong, a.rows * a.cols, first / a.cols, first % a.cols, v.max_error_ulp);
  }
  if (result.guards > 0)
    v.what += fmt::format("{}{} bytes outside the rows were overwritten", v.what.empty() ? "" : "; ", result.guards);
  return v;
}

void OracleKernels::check_copy(void* to, const void* from, std::size_t bytes, bool to_device, const Stream& stream) {
  cuda::check(cudaMemcpyAsync(to, from, bytes, to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream),
              "copying the result of the check");
}

void OracleKernels::flush(const DeviceBuffer& scratch, const Stream& stream) const {
  // Written, so that nothing of what was there is left; then read, so that no line waits to be written back.
  cuda::check(cudaMemsetAsync(scratch.data(), 0, static_cast<std::size_t>(scratch.bytes()), stream), "flushing the L2");
  const void* p = scratch.data();
  long long count = scratch.bytes() / 16;
  void* never = result_.data();
  void* args[] = {&p, &count, &never};
  kernels_.launch(kernel_flush, dim3(2048), 256, args, stream);
}

}  // namespace rowtune::cuda
