#pragma once
// The words of rowtune: operation, dtype, regime, shape, workload. Each has one spelling, used by the command line,
// the database and the reports alike; parse_* throws UsageError naming the valid choices.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/errors.hpp"

namespace rowtune {

enum class Operation { copy, softmax, log_softmax, layernorm, rmsnorm, fused_add_rmsnorm, argmax_logsumexp };
enum class Dtype { f32, f16, bf16, f64 };  ///< f64 exists in the stability study only
enum class Regime { cold, warm, overlapped };

const std::vector<Operation>& all_operations();  ///< copy first
const std::vector<Dtype>& tensor_dtypes();       ///< f32, f16, bf16
std::string to_string(Operation op);
std::string to_string(Dtype dtype);
std::string to_string(Regime regime);
Operation parse_operation(std::string_view text);
Dtype parse_dtype(std::string_view text);
Regime parse_regime(std::string_view text);
/// "all" or a comma-separated list.
std::vector<Operation> parse_operations(std::string_view text);
std::vector<Dtype> parse_dtypes(std::string_view text);
int size_of(Dtype dtype);  ///< bytes

bool is_norm(Operation op);  ///< layernorm, rmsnorm, fused_add_rmsnorm: those with weights and eps

/// `RxC[:ld=N][:off=N]`: rows, columns, row stride and offset of the first element, in elements.
struct Shape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;   ///< row stride; equals cols when the matrix is contiguous
  std::int64_t off = 0;  ///< elements between an aligned address and the first element, of inputs and outputs alike

  static Shape of(std::int64_t rows, std::int64_t cols) { return {rows, cols, cols, 0}; }
  bool contiguous() const { return ld == cols; }
  bool operator==(const Shape&) const = default;
  auto operator<=>(const Shape&) const = default;
};

std::string to_string(const Shape& shape);  ///< the shortest text that parses back
Shape parse_shape(std::string_view text);

/// What changes code or bytes besides op, dtype and shape. Fields that an operation lacks keep their defaults.
struct Options {
  bool weight = false;    ///< gamma of layernorm; weight of the rms norms
  bool bias = false;      ///< beta of layernorm
  bool in_place = false;  ///< out == in; fused_add_rmsnorm: residual and hidden are overwritten
  double eps = 0;
  bool operator==(const Options&) const = default;
  auto operator<=>(const Options&) const = default;
};

/// layernorm: weight and bias, eps 1e-5; rmsnorm: weight, eps 1e-6; fused_add_rmsnorm: in place besides.
Options default_options(Operation op);
/// Canonical text such as `weight,bias,eps=1e-05` or `-` when there is nothing to say; parses back.
std::string to_string(const Options& options);
Options parse_options(std::string_view text);

struct Workload {
  Operation op = Operation::copy;
  Dtype dtype = Dtype::f32;
  Shape shape;
  Regime regime = Regime::cold;
  Options options;

  static Workload of(Operation op, Dtype dtype, Shape shape, Regime regime = Regime::cold) {
    return {op, dtype, shape, regime, default_options(op)};
  }
  bool operator==(const Workload&) const = default;
  auto operator<=>(const Workload&) const = default;
};

std::string to_string(const Workload& workload);  ///< `softmax bf16 4096x1000 cold`, for people

/// Tensors like the input that an operation reads and writes once: softmax 1 and 1, fused_add_rmsnorm 2 and 2,
/// argmax_logsumexp 1 and 0.
int inputs_of(Operation op);
int outputs_of(Operation op);
/// What an operation gives: a tensor like its input; or, argmax_logsumexp, rows x 2 words of 32 bits, contiguous: the
/// index (int32) and the log-sum-exp (f32).
bool gives_row_results(Operation op);
struct OutputForm {
  Shape shape;
  int element_bytes;
};
OutputForm output_form(const Workload& workload);
/// The bytes a perfect kernel moves: each input once, each output once, weights once.
std::int64_t bytes_moved(const Workload& workload);
/// The copy of the same bytes, on which the ceiling is measured (fused_add_rmsnorm: twice the rows).
/// argmax_logsumexp, which writes next to nothing, is measured against half the time of that copy.
/// Copies are contiguous: the ceiling is what the memory allows, not what a stride allows.
Workload ceiling_of(const Workload& workload);

}  // namespace rowtune
