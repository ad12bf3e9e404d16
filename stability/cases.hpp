#pragma once
// Cases with known answers: a JSON list of
//   {id, op, dtype, input: [[value, count]...], repeat?, eps?, tol?, expect: {mean|var_pop|var_sample|logsumexp: value,
//    output: [[value, count]...]}}
// with values as decimal strings, rounded to the dtype first (eps stays unrounded; tol is an absolute tolerance that
// replaces the formula's). ops: variance, softmax, log_softmax, layernorm, rmsnorm.
//
// Right, with h the depth of the summation, u the arithmetic's unit roundoff, k the condition number and C = 4:
//   variance              C (h u (1 + k) var + (h u rms)^2)
//   mean, log-sum-exp     C h u max(1, |value|, rms)
//   softmax, log_softmax  C u (h + min(range of the finite inputs, 100)) max(|value|, 1 for log_softmax)
//   norms                 C u (1 + h rms rstd)
// each plus half an ulp of the output dtype and one subnormal. The fast exponential turns results below 2^-126 into 0
// by its definition: f32 methods that use it may be off by that much more. An expected value written with 12 or more
// digits is itself rounded: half a unit of its last place is allowed too. Non-finite values must match in kind.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/words.hpp"

namespace rowtune::stability {

struct Expected {
  long double value = 0;
  long double rounding = 0;  ///< of the decimal it was written as
};

struct KnownCase {
  std::string id, op;
  Dtype dtype = Dtype::f32;
  std::vector<double> input;  ///< rounded to the dtype
  long double eps = 0;
  double tol = -1;                           ///< negative: the formula
  std::map<std::string, Expected> expected;  ///< mean, var_pop, var_sample, logsumexp
  std::vector<Expected> output;              ///< empty, or as long as the input
};

/// Throws EnvironmentError that names `source`, the case and the field.
std::vector<KnownCase> parse_cases(std::string_view json, const std::string& source);
std::vector<KnownCase> read_cases(const std::string& path);

/// One method on one case.
struct CaseVerdict {
  std::string id, op, method, order;
  Dtype dtype = Dtype::f32, arithmetic = Dtype::f32;
  bool fast_exponential = false;
  bool used_by_kernels = false;
  bool right = true;
  double worst = 0;    ///< largest error / tolerance; inf when the kinds of non-finite values differ
  std::string detail;  ///< what was worst: quantity, got, expected
};
std::vector<CaseVerdict> judge_case(const KnownCase& known);

}  // namespace rowtune::stability
