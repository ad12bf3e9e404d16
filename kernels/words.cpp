#include "kernels/words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace rowtune {
namespace {

template <class E>
using Names = std::vector<std::pair<E, std::string>>;

const Names<Operation> operation_names{{Operation::copy, "copy"},
                                       {Operation::softmax, "softmax"},
                                       {Operation::log_softmax, "log_softmax"},
                                       {Operation::layernorm, "layernorm"},
                                       {Operation::rmsnorm, "rmsnorm"},
                                       {Operation::fused_add_rmsnorm, "fused_add_rmsnorm"}};
const Names<Dtype> dtype_names{{Dtype::f32, "f32"}, {Dtype::f16, "f16"}, {Dtype::bf16, "bf16"}, {Dtype::f64, "f64"}};
const Names<Regime> regime_names{{Regime::cold, "cold"}, {Regime::warm, "warm"}, {Regime::overlapped, "overlapped"}};
const Names<Outcome> outcome_names{{Outcome::ok, "ok"},
                                   {Outcome::compile_error, "compile_error"},
                                   {Outcome::launch_error, "launch_error"},
                                   {Outcome::wrong_result, "wrong_result"},
                                   {Outcome::timeout, "timeout"},
                                   {Outcome::crash, "crash"},
                                   {Outcome::out_of_memory, "out_of_memory"},
                                   {Outcome::implausible, "implausible"}};

template <class E>
const std::string& name_of(const Names<E>& names, E value) {
  return std::find_if(names.begin(), names.end(), [&](auto& n) { return n.first == value; })->second;
}

template <class E>
E parse_name(const Names<E>& names, std::string_view what, std::string_view text) {
  std::vector<std::string> choices;
  for (const auto& [value, name] : names) {
    if (name == text) return value;
    choices.push_back(name);
  }
  throw UsageError(fmt::format("unknown {} '{}'; choose from {}", what, text, fmt::join(choices, ", ")));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <class E>
std::vector<E> parse_list(std::string_view text, const std::vector<E>& all, E (*parse)(std::string_view)) {
  if (text == "all") return all;
  std::vector<E> out;
  for (auto part : split(text, ',')) {
    const E value = parse(part);
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  }
  return out;
}

std::int64_t parse_extent(std::string_view number, std::string_view shape, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  const auto end = number.data() + number.size();
  const auto [at, error] = std::from_chars(number.data(), end, value);
  if (error != std::errc() || at != end || value < low || value > high)
    throw UsageError(
        fmt::format("shape '{}': '{}' is not a whole number from {} to {}; a shape is ROWSxCOLS, with "
                    ":ld=N (row stride) and :off=N (offset) in elements if needed, such as 4096x1000 "
                    "or 64x1000:ld=1024:off=1",
                    shape, number, low, high));
  return value;
}

constexpr std::int64_t extent_limit = std::numeric_limits<std::int32_t>::max();

}  // namespace

const std::vector<Operation>& all_operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> ops;
    for (auto& n : operation_names) ops.push_back(n.first);
    return ops;
  }();
  return all;
}

const std::vector<Dtype>& tensor_dtypes() {
  static const std::vector<Dtype> all{Dtype::f32, Dtype::f16, Dtype::bf16};
  return all;
}

std::string to_string(Operation op) { return name_of(operation_names, op); }
std::string to_string(Dtype dtype) { return name_of(dtype_names, dtype); }
std::string to_string(Regime regime) { return name_of(regime_names, regime); }
std::string to_string(Outcome outcome) { return name_of(outcome_names, outcome); }
Operation parse_operation(std::string_view text) { return parse_name(operation_names, "operation", text); }
Regime parse_regime(std::string_view text) { return parse_name(regime_names, "regime", text); }
Outcome parse_outcome(const std::string& name) { return parse_name(outcome_names, "outcome", name); }

Dtype parse_dtype(std::string_view text) {
  static const Names<Dtype> tensors(dtype_names.begin(), dtype_names.begin() + 3);
  return parse_name(tensors, "dtype", text);
}

std::vector<Operation> parse_operations(std::string_view text) {
  return parse_list(text, all_operations(), parse_operation);
}
std::vector<Dtype> parse_dtypes(std::string_view text) { return parse_list(text, tensor_dtypes(), parse_dtype); }

int size_of(Dtype dtype) { return dtype == Dtype::f64 ? 8 : dtype == Dtype::f32 ? 4 : 2; }

bool is_norm(Operation op) {
  return op == Operation::layernorm || op == Operation::rmsnorm || op == Operation::fused_add_rmsnorm;
}

std::string to_string(const Shape& shape) {
  std::string text = fmt::format("{}x{}", shape.rows, shape.cols);
  if (shape.ld != shape.cols) text += fmt::format(":ld={}", shape.ld);
  if (shape.off != 0) text += fmt::format(":off={}", shape.off);
  return text;
}

Shape parse_shape(std::string_view text) {
  const auto parts = split(text, ':');
  const auto extents = split(parts[0], 'x');
  if (extents.size() != 2) throw UsageError(fmt::format("shape '{}' is not ROWSxCOLS, such as 4096x1000", text));
  Shape shape;
  shape.rows = parse_extent(extents[0], text, 0, extent_limit);
  shape.cols = parse_extent(extents[1], text, 0, extent_limit);
  shape.ld = shape.cols;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].starts_with("ld="))
      shape.ld = parse_extent(parts[i].substr(3), text, shape.cols, extent_limit);
    else if (parts[i].starts_with("off="))
      shape.off = parse_extent(parts[i].substr(4), text, 0, extent_limit);
    else
      throw UsageError(fmt::format("shape '{}': '{}' is neither ld=N nor off=N", text, parts[i]));
  }
  return shape;
}

Options default_options(Operation op) {
  Options options;
  options.weight = is_norm(op);
  options.bias = op == Operation::layernorm;
  options.in_place = op == Operation::fused_add_rmsnorm;
  options.eps = op == Operation::layernorm ? 1e-5 : is_norm(op) ? 1e-6 : 0;
  return options;
}

std::string to_string(const Options& options) {
  std::vector<std::string> words;
  if (options.weight) words.push_back("weight");
  if (options.bias) words.push_back("bias");
  if (options.in_place) words.push_back("in_place");
  if (options.eps != 0) words.push_back(fmt::format("eps={}", options.eps));
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ","));
}

Options parse_options(std::string_view text) {
  Options options;
  if (text == "-") return options;
  for (auto word : split(text, ',')) {
    if (word == "weight") {
      options.weight = true;
    } else if (word == "bias") {
      options.bias = true;
    } else if (word == "in_place") {
      options.in_place = true;
    } else if (word.starts_with("eps=")) {
      const auto number = word.substr(4);
      const auto [at, error] = std::from_chars(number.data(), number.data() + number.size(), options.eps);
      if (error != std::errc() || at != number.data() + number.size() || !(options.eps >= 0))
        throw UsageError(fmt::format("options '{}': eps must be a number >= 0", text));
    } else {
      throw UsageError(fmt::format("options '{}': '{}' is none of weight, bias, in_place, eps=X", text, word));
    }
  }
  return options;
}

std::string to_string(const Workload& w) {
  std::string text =
      fmt::format("{} {} {} {}", to_string(w.op), to_string(w.dtype), to_string(w.shape), to_string(w.regime));
  if (w.options != default_options(w.op)) text += fmt::format(" [{}]", to_string(w.options));
  return text;
}

int inputs_of(Operation op) { return op == Operation::fused_add_rmsnorm ? 2 : 1; }
int outputs_of(Operation op) { return op == Operation::fused_add_rmsnorm ? 2 : 1; }

std::int64_t bytes_moved(const Workload& w) {
  const std::int64_t tensors = inputs_of(w.op) + outputs_of(w.op);
  const std::int64_t weights = w.shape.rows == 0 ? 0 : int(w.options.weight) + int(w.options.bias);
  // Every shape is legal, and the largest have more bytes than can be counted.
  std::int64_t vectors = 0, elements = 0, bytes = 0;
  if (__builtin_mul_overflow(w.shape.rows, tensors, &vectors) || __builtin_add_overflow(vectors, weights, &vectors) ||
      __builtin_mul_overflow(vectors, w.shape.cols, &elements) ||
      __builtin_mul_overflow(elements, size_of(w.dtype), &bytes))
    return std::numeric_limits<std::int64_t>::max();
  return bytes;
}

Workload ceiling_of(const Workload& w) {
  return Workload::of(Operation::copy, w.dtype, Shape::of(w.shape.rows * inputs_of(w.op), w.shape.cols), w.regime);
}

}  // namespace rowtune
