#pragma once
// The ways to compute softmax, log_softmax and log-sum-exp. Each first reduces the row to a state (where to shift,
// the sum of exponentials), then every output depends on one element and the state: rows of any length stream.

#include <functional>
#include <string>
#include <vector>

#include "stability/arithmetic.hpp"
#include "stability/float_flags.hpp"
#include "stability/orders.hpp"
#include "stability/rows.hpp"

namespace rowtune::stability {

enum class SoftmaxMethod {
  unsafe,      ///< exp(x) / sum exp(x), no shift
  three_pass,  ///< maximum, sum of exp(x - max), output
  online,      ///< (max, sum) merged element by element (Milakov & Gimelshein 2018); lanes merged n-ary
  split        ///< several blocks share the row: three-pass in each part, the parts merged
};
/// How log_softmax and log-sum-exp use the state.
enum class LogForm {
  shifted,  ///< (x - max) - log(sum): what rowtune's kernels do
  folded,   ///< x - (max + log(sum)): rounds at the size of max
  of_ratio  ///< log of the softmax: -inf where that has vanished
};

struct SoftmaxChoice {
  SoftmaxMethod method = SoftmaxMethod::three_pass;
  Summation summation;
  LogForm log_form = LogForm::shifted;  ///< log_softmax only
  int parts = 8;                        ///< split only
  bool operator==(const SoftmaxChoice&) const = default;
};

std::string to_string(SoftmaxMethod method);
std::string method_name(const SoftmaxChoice& choice);  ///< `three_pass`, `three_pass_folded`...
std::vector<SoftmaxChoice> all_softmax(int lanes);
/// log_softmax has the naive log forms besides.
std::vector<SoftmaxChoice> all_log_softmax(int lanes);
/// Safe forms over lanes; log_softmax in its shifted form.
bool used_by_kernels(const SoftmaxChoice& choice);
/// Depth of the summation (see depth_of), the merge of parts included.
double depth_of(const SoftmaxChoice& choice, std::int64_t n);

struct SoftmaxState {
  double max = 0;  ///< as the method found it; 0 for unsafe
  double sum = 0;
  double log_sum_exp = 0;
  int rescales = 0;  ///< on the unluckiest element's way through the merges
  FloatFlags flags;
};

/// A method on one row, reduced and ready to give outputs.
class SoftmaxRun {
 public:
  SoftmaxRun(const SoftmaxChoice& choice, const ArithmeticChoice& arithmetic, const RowSource& row);
  const SoftmaxState& state() const { return state_; }
  /// Outputs of the elements first .. first + out.size() - 1, unrounded by the tensor's dtype (exact doubles of the
  /// arithmetic type). Flags raised here are added to `flags`.
  void softmax(std::int64_t first, std::span<double> out, FloatFlags& flags) const;
  void log_softmax(std::int64_t first, std::span<double> out, FloatFlags& flags) const;

 private:
  using Emit = std::function<void(std::span<double>)>;  ///< elements in, outputs out
  SoftmaxState state_;
  const RowSource* row_;
  Emit softmax_, log_softmax_;
};

}  // namespace rowtune::stability
