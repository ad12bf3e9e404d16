#include "kernels/tests/spec_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/cuda/known_devices.hpp"
#include "kernels/oracle.hpp"
#include "rowtune/testdata.cuh"
#include "rowtune/tolerance.cuh"

namespace rowtune::spec {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t guard = 256;

bool is_fused(const Workload& w) { return w.op == Operation::fused_add_rmsnorm; }

/// A byte that depends on its place, so that a canary that was copied elsewhere is seen too.
std::byte canary(std::int64_t i) { return static_cast<std::byte>(0xa5 ^ (i * 37 & 0x7f)); }

void paint(Buffer& buffer) {
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer.data()[i] = canary(static_cast<std::int64_t>(i));
}

std::int64_t bytes_of(const Tensor& t) {
  return t.rows == 0 || t.cols == 0 ? 0 : ((t.rows - 1) * t.stride + t.cols) * t.bytes;
}

Tensor add_tensor(Call& call, std::int64_t rows, std::int64_t cols, std::int64_t stride, std::int64_t off, int bytes) {
  Tensor t{static_cast<int>(call.buffers.size()), guard + off * bytes, rows, cols, stride, bytes};
  call.buffers.emplace_back(static_cast<std::size_t>(t.first + bytes_of(t) + guard));
  paint(call.buffers.back());
  return t;
}

const std::byte* row_of(const Call& call, const Tensor& t, std::int64_t row) {
  return call.buffers[static_cast<std::size_t>(t.buffer)].data() + t.first + row * t.stride * t.bytes;
}
std::byte* row_of(Call& call, const Tensor& t, std::int64_t row) {
  return call.buffers[static_cast<std::size_t>(t.buffer)].data() + t.first + row * t.stride * t.bytes;
}

std::vector<double> load_row(const Call& call, const Tensor& t, std::int64_t row) {
  std::vector<double> x(static_cast<std::size_t>(t.cols));
  for (std::int64_t c = 0; c < t.cols; ++c)
    x[static_cast<std::size_t>(c)] = load_element(call.workload.dtype, row_of(call, t, row), c);
  return x;
}

std::vector<double> load_output_row(const Call& call, std::int64_t row) {
  std::vector<double> y(static_cast<std::size_t>(call.output.cols));
  for (std::int64_t c = 0; c < call.output.cols; ++c)
    y[static_cast<std::size_t>(c)] = load_output(call.workload, row_of(call, call.output, row), c);
  return y;
}

void poison(Call& call, const Tensor& t) {
  for (std::int64_t r = 0; r < t.rows; ++r)
    std::memset(row_of(call, t, r), 0xff, static_cast<std::size_t>(t.cols * t.bytes));
}

/// Weights as the kernel uses them: fp32 sums of weight and offset.
std::vector<double> effective_weights(const Call& call) {
  if (!call.weight.there()) return {};
  auto w = load_row(call, call.weight, 0);
  for (double& x : w) x = static_cast<double>(static_cast<float>(x) + call.weight_offset);
  return w;
}

/// Bytes that the call must not have changed: everything outside the elements of its outputs.
std::string check_canaries(const Call& before, const Call& after) {
  for (std::size_t b = 0; b < before.buffers.size(); ++b) {
    const Buffer& was = before.buffers[b];
    const Buffer& is = after.buffers[b];
    if (std::memcmp(was.data(), is.data(), was.size()) == 0) continue;
    std::vector<bool> free(was.size(), false);
    for (const Tensor* t : {&before.output, &before.residual_out}) {
      if (t->buffer != static_cast<int>(b)) continue;
      const int bytes = t->bytes;
      for (std::int64_t r = 0; r < t->rows; ++r)
        std::fill_n(free.begin() + t->first + r * t->stride * bytes, t->cols * bytes, true);
    }
    for (std::size_t i = 0; i < was.size(); ++i)
      if (!free[i] && was.data()[i] != is.data()[i])
        return fmt::format("byte {} of buffer {}, outside every output row, was overwritten", i, b);
  }
  return {};
}

double weight_scale(const std::vector<double>& weights, std::size_t c) { return weights.empty() ? 1 : weights[c]; }

std::string check_elements(const Call& before, const Call& after, double depth) {
  const Workload& w = before.workload;
  const auto weights = effective_weights(before);
  const auto biases = before.bias.there() ? load_row(before, before.bias, 0) : std::vector<double>{};
  for (std::int64_t r = 0; r < w.shape.rows; ++r) {
    const auto x = load_row(before, before.input, r);
    const auto residual = is_fused(w) ? load_row(before, before.residual, r) : std::vector<double>{};
    const RowReference want = reference_row(w, x, residual, weights.empty() ? nullptr : weights.data(),
                                            biases.empty() ? nullptr : biases.data());
    const auto got = load_output_row(after, r);
    for (std::size_t c = 0; c < want.output.size(); ++c) {
      double error = 0;
      if (!check_output(w, static_cast<std::int64_t>(c), got[c], want.output[c], want.spread, weight_scale(weights, c),
                        depth, &error))
        return fmt::format("element [{}, {}] of the output is {}, must be {} ({:.3g} ulp off; depth {})", r, c, got[c],
                           want.output[c], error, depth);
    }
    if (!is_fused(w)) continue;
    const auto sums = load_row(after, after.residual_out, r);
    for (std::size_t c = 0; c < sums.size(); ++c)
      if (!(sums[c] == want.new_residual[c] || (std::isnan(sums[c]) && std::isnan(want.new_residual[c]))))
        return fmt::format("new residual [{}, {}] is {}, must be {} exactly", r, c, sums[c], want.new_residual[c]);
  }
  return {};
}

}  // namespace

std::string to_string(Values values) {
  static const std::array<const char*, values_count> names{"normal",
                                                           "constant",
                                                           "zeros",
                                                           "small_integers",
                                                           "far_from_zero",
                                                           "wide",
                                                           "tiny",
                                                           "one_outlier",
                                                           "descending",
                                                           "ascending",
                                                           "all_minus_inf",
                                                           "one_finite",
                                                           "minus_inf_head",
                                                           "minus_inf_tail",
                                                           "minus_inf_comb",
                                                           "one_plus_inf",
                                                           "one_nan",
                                                           "nan_among_minus_inf",
                                                           "nan_behind_minus_inf",
                                                           "near_eps"};
  return names[static_cast<std::size_t>(values)];
}

bool promised(const Workload& w, const Config& config, Values values) {
  if (config.algorithm == "unsafe")
    return values == Values::normal || values == Values::constant || values == Values::zeros ||
           values == Values::small_integers || values == Values::tiny;
  if (w.op == Operation::layernorm && config.get('w', 3) == 1)
    return values == Values::normal || values == Values::small_integers || values == Values::zeros ||
           values == Values::near_eps;
  return true;
}

double value_at(Values values, Dtype dtype, bool norm, std::int64_t row, std::int64_t col, std::int64_t cols) {
  const double x = test_value(test_input, row, col, cols);
  const double top = dtype == Dtype::f16 ? 60000 : norm ? 1e15 : 1e30;
  const std::int64_t somewhere = (row * 7919 + 11) % std::max<std::int64_t>(1, cols);
  switch (values) {
    case Values::normal:
      return x;
    case Values::constant:
      return 3.5;
    case Values::zeros:
      return 0;
    case Values::small_integers:
      return static_cast<double>((col * 5 + row) % 9 - 4);
    case Values::far_from_zero:
      return (dtype == Dtype::f16 ? 1000 : 2000) + x;
    case Values::wide:
      return x / 10 * top;
    case Values::tiny:
      return col % 3 == 0 ? 0 : x * (dtype == Dtype::f16 ? 0x1p-22 : 0x1p-130);
    case Values::one_outlier:
      return col == somewhere ? 1000 * x : x;
    case Values::descending:
      return static_cast<double>(cols - col) * 0.5;
    case Values::ascending:
      return static_cast<double>(col) * 0.5;
    case Values::all_minus_inf:
      return -inf;
    case Values::one_finite:
      return col == somewhere ? -1.5 : -inf;
    case Values::minus_inf_head:
      return col < (cols + 2) / 3 ? -inf : x;
    case Values::minus_inf_tail:
      return col >= cols / 3 ? -inf : x;
    case Values::minus_inf_comb:
      return col % 2 == 0 ? -inf : x;
    case Values::one_plus_inf:
      return col == somewhere ? inf : x;
    case Values::one_nan:
      return col == somewhere ? nan : x;
    case Values::nan_among_minus_inf:
      return col == somewhere ? nan : -inf;
    case Values::nan_behind_minus_inf:
      return col == somewhere / 3 ? nan : col < (cols + 2) / 3 ? -inf : x;
    case Values::near_eps:
      return x * 0x1p-10;
  }
  return 0;
}

Call make_call(const Workload& w, const Config& config, const std::vector<Values>& rows, const Layout& layout) {
  return make_call(
      w, config,
      [&](std::int64_t r, std::int64_t c) {
        return value_at(rows[static_cast<std::size_t>(r) % rows.size()], w.dtype, is_norm(w.op), r, c, w.shape.cols);
      },
      layout);
}

Call make_call(const Workload& w, const Config& config, const Fill& fill, const Layout& layout) {
  Call call;
  call.workload = w;
  call.config = config;
  const Shape& s = w.shape;
  const bool fused = is_fused(w);
  const int bytes = size_of(w.dtype);
  const auto add_matrix = [&](int which) {
    return add_tensor(call, s.rows, s.cols, s.ld, s.off + which * layout.apart, bytes);
  };
  if (fused && layout.shared_matrix) {
    // Two column views of one matrix: their ranges interleave, their elements do not.
    const std::int64_t half = s.ld;
    call.input = add_tensor(call, s.rows, 2 * half, 2 * half, s.off, bytes);
    call.input.cols = s.cols;
    call.residual = call.input;
    call.residual.first += half * size_of(w.dtype);
  } else {
    call.input = add_matrix(0);
    if (fused) call.residual = add_matrix(1);
  }
  if (w.options.weight) call.weight = add_tensor(call, 1, s.cols, s.cols, layout.weight_offset_elements, bytes);
  if (w.options.bias) call.bias = add_tensor(call, 1, s.cols, s.cols, layout.weight_offset_elements, bytes);
  const OutputForm form = output_form(w);
  call.output = w.options.in_place
                    ? call.input
                    : add_tensor(call, form.shape.rows, form.shape.cols, form.shape.ld,
                                 form.shape.off + (gives_row_results(w.op) ? 0 : 2 * layout.apart), form.element_bytes);
  if (fused) call.residual_out = w.options.in_place ? call.residual : add_matrix(3);
  if (!w.options.in_place) {
    poison(call, call.output);
    if (fused) poison(call, call.residual_out);
  }
  for (std::int64_t r = 0; r < s.rows; ++r) {
    for (std::int64_t c = 0; c < s.cols; ++c) {
      store_element(w.dtype, row_of(call, call.input, r), c, fill(r, c));
      if (fused) store_element(w.dtype, row_of(call, call.residual, r), c, test_value(test_residual, r, c, s.cols));
    }
  }
  for (std::int64_t c = 0; c < s.cols; ++c) {
    if (call.weight.there())
      store_element(w.dtype, row_of(call, call.weight, 0), c, test_value(test_weight, 0, c, s.cols));
    if (call.bias.there()) store_element(w.dtype, row_of(call, call.bias, 0), c, test_value(test_bias, 0, c, s.cols));
  }
  return call;
}

std::string run_and_check(const Call& call, std::uint64_t order, bool twice) {
  const auto about = [&](const std::string& what) {
    return fmt::format("{}, {}: {}", to_string(call.workload), call.config.name(), what);
  };
  try {
    const double depth = cuda::plan_kernel(call.workload, call.config).depth;
    Call after = call;
    runner().run(after, order);
    std::string wrong = check_canaries(call, after);
    if (wrong.empty()) wrong = check_elements(call, after, depth);
    if (!wrong.empty()) return about(wrong);
    if (!twice) return {};
    Call again = call;
    runner().run(again, order + 1);
    for (std::size_t b = 0; b < call.buffers.size(); ++b)
      if (std::memcmp(after.buffers[b].data(), again.buffers[b].data(), again.buffers[b].size()) != 0)
        return about("a second run gave other bits");
  } catch (const std::exception& e) {
    return about(e.what());
  }
  return {};
}

std::vector<double> output_of(const Call& call) {
  std::vector<double> all;
  for (std::int64_t r = 0; r < call.output.rows; ++r) {
    const auto row = load_output_row(call, r);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

std::vector<double> tolerances_of(const Call& before) {
  const Workload& w = before.workload;
  const double depth = cuda::plan_kernel(w, before.config).depth;
  const auto weights = effective_weights(before);
  const int kind = w.op == Operation::softmax       ? tolerance_softmax
                   : w.op == Operation::log_softmax ? tolerance_log_softmax
                                                    : tolerance_norm;
  std::vector<double> all;
  for (std::int64_t r = 0; r < w.shape.rows; ++r) {
    const auto want =
        reference_row(w, load_row(before, before.input, r), {}, weights.empty() ? nullptr : weights.data(), nullptr);
    for (std::size_t c = 0; c < want.output.size(); ++c)
      all.push_back(tolerance_of(kind, static_cast<int>(w.dtype), want.output[c], want.spread,
                                 std::fabs(weight_scale(weights, c)), depth));
  }
  return all;
}

bool is_legal(const Workload& workload, const Config& config) {
  static const DeviceInfo device = cuda::known_device(90);
  return emulator::is_legal(workload, device, config);
}

}  // namespace rowtune::spec
