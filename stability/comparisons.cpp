#include "stability/comparisons.hpp"

#include <cmath>
#include <iterator>

#include "stability/formats.hpp"
#include "stability/norms.hpp"

namespace rowtune::stability {
namespace {

Result start(const Tag& tag, const char* op, std::string method, const Summation& summation, Dtype dtype,
             const ArithmeticChoice& arithmetic, std::int64_t n) {
  Result r;
  r.experiment = tag.experiment;
  r.test_case = tag.test_case;
  r.factor = tag.factor;
  r.factor_value = tag.factor_value;
  r.op = op;
  r.method = std::move(method);
  r.order = to_string(summation);
  r.dtype = dtype;
  r.arithmetic = arithmetic;
  r.n = n;
  return r;
}

void fill(Result& r, const ErrorTally& tally, const Bound& bound) {
  if (tally.has_relative()) {
    r.rel_error = tally.max_relative;
    r.lre = lre_of(tally.max_relative);
  }
  r.ulp_error = tally.max_ulp;
  r.mean_ulp_error = tally.mean_ulp();
  r.nan_count = tally.nan_count;
  r.inf_count = tally.inf_count;
  r.negative_count = tally.negative_count;
  r.false_zero_count = tally.false_zero_count;
  // A bound on nothing measured (no output in the normal range) would only decorate.
  if (bound.kind != BoundKind::none && r.rel_error) {
    r.bound = bound.value;
    r.bound_kind = bound.kind;
  }
}

/// Where the reference itself is not finite, its NaN and inf are right and count as no failure.
void forgive_expected(Result& r, std::int64_t mismatches) {
  if (mismatches == 0) r.nan_count = r.inf_count = 0;
}

template <class Read>
void for_stretches(const RowSource& row, Read read) {
  for (std::int64_t first = 0; first < row.size(); first += row_stretch)
    read(first, static_cast<std::size_t>(std::min(row_stretch, row.size() - first)));
}

}  // namespace

const std::vector<Precision>& all_precisions() {
  static const std::vector<Precision> all = {{Dtype::f64, Dtype::f64}, {Dtype::f32, Dtype::f32},
                                             {Dtype::f16, Dtype::f32}, {Dtype::bf16, Dtype::f32},
                                             {Dtype::f16, Dtype::f16}, {Dtype::bf16, Dtype::bf16}};
  return all;
}

double stored(Dtype dtype, Dtype arithmetic, double value) {
  if (dtype == arithmetic) return value;
  if (arithmetic == Dtype::f32 && dtype == Dtype::f16) return Half(static_cast<float>(value)).value();
  if (arithmetic == Dtype::f32 && dtype == Dtype::bf16) return Bfloat(static_cast<float>(value)).value();
  return round_to(dtype, static_cast<long double>(value));
}

void append(std::vector<Result>& all, std::vector<Result> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

std::vector<Result> compare_variance(const Tag& tag, Dtype dtype, const ArithmeticChoice& arithmetic,
                                     const RowSource& row, const MomentsReference& reference,
                                     const std::vector<MomentsChoice>& choices) {
  double first = 0;
  row.read(0, {&first, 1});
  std::vector<Result> results;
  for (const MomentsChoice& choice : choices) {
    const MomentsValue value = run_moments(choice, arithmetic, row);
    Result r = start(tag, "variance", to_string(choice.method), choice.summation, dtype, arithmetic, row.size());
    ErrorTally tally(arithmetic.type);
    tally.add_variance(value.variance, reference.variance);
    fill(r, tally, variance_bound(choice, arithmetic.type, reference, first, value.flags));
    forgive_expected(r, tally.kind_mismatch_count);
    r.kappa = static_cast<double>(reference.kappa);
    r.value = value.variance;
    r.reference = static_cast<double>(reference.variance);
    if (reference.variance == 0) {  // no relative error of nothing, and an ulp at 0 says little
      r.ulp_error = r.mean_ulp_error = std::nullopt;
      r.note = "variance 0 after rounding";
    }
    results.push_back(std::move(r));
  }
  return results;
}

std::vector<Result> compare_softmax(const Tag& tag, Operation op, Dtype dtype, const ArithmeticChoice& arithmetic,
                                    const RowSource& row, const SoftmaxReference& reference,
                                    const std::vector<SoftmaxChoice>& choices) {
  const bool logarithm = op == Operation::log_softmax;
  std::vector<SoftmaxRun> runs;
  std::vector<FloatFlags> flags(choices.size());
  std::vector<ErrorTally> tallies(choices.size(), ErrorTally(dtype, logarithm ? 1 : 0));
  for (const SoftmaxChoice& choice : choices) runs.emplace_back(choice, arithmetic, row);
  std::vector<double> values;
  std::vector<long double> right;
  for_stretches(row, [&](std::int64_t at, std::size_t count) {
    values.resize(count);
    right.resize(count);
    row.read(at, values);
    for (std::size_t i = 0; i < count; ++i)
      right[i] = logarithm ? reference.log_softmax(values[i]) : reference.softmax(values[i]);
    for (std::size_t k = 0; k < runs.size(); ++k) {
      if (logarithm)
        runs[k].log_softmax(at, values, flags[k]);
      else
        runs[k].softmax(at, values, flags[k]);
      for (std::size_t i = 0; i < count; ++i) tallies[k].add(stored(dtype, arithmetic.type, values[i]), right[i]);
    }
  });
  std::vector<Result> results;
  for (std::size_t k = 0; k < choices.size(); ++k) {
    Result r = start(tag, logarithm ? "log_softmax" : "softmax", method_name(choices[k]), choices[k].summation, dtype,
                     arithmetic, row.size());
    const Bound bound =
        logarithm ? Bound{} : softmax_bound(choices[k], arithmetic, dtype, reference, runs[k].state(), flags[k]);
    fill(r, tallies[k], bound);
    forgive_expected(r, tallies[k].kind_mismatch_count);
    results.push_back(std::move(r));
  }
  return results;
}

std::vector<Result> compare_log_sum_exp(const Tag& tag, Dtype dtype, const ArithmeticChoice& arithmetic,
                                        const RowSource& row, const SoftmaxReference& reference,
                                        const std::vector<SoftmaxChoice>& choices) {
  std::vector<Result> results;
  for (const SoftmaxChoice& choice : choices) {
    if (choice.log_form != LogForm::shifted) continue;
    const SoftmaxRun run(choice, arithmetic, row);
    Result r = start(tag, "logsumexp", method_name(choice), choice.summation, dtype, arithmetic, row.size());
    ErrorTally tally(arithmetic.type);
    tally.add(run.state().log_sum_exp, reference.log_sum_exp);
    fill(r, tally, log_sum_exp_bound(choice, arithmetic, reference, run.state()));
    forgive_expected(r, tally.kind_mismatch_count);
    r.value = run.state().log_sum_exp;
    r.reference = static_cast<double>(reference.log_sum_exp);
    results.push_back(std::move(r));
  }
  return results;
}

std::vector<Result> compare_norm(const Tag& tag, Operation op, Dtype dtype, const ArithmeticChoice& arithmetic,
                                 double eps, const RowSource& row, const MomentsReference& reference,
                                 const std::vector<MomentsChoice>& choices) {
  const NormReference right =
      op == Operation::layernorm ? reference_layernorm(reference, eps) : reference_rmsnorm(reference, eps);
  std::vector<Result> results;
  std::vector<double> inputs, values;
  for (const MomentsChoice& choice : choices) {
    // rmsnorm has no mean to lose: one method, in each order.
    if (op == Operation::rmsnorm && choice.method != MomentsMethod::one_pass) continue;
    const NormRun run(op, choice, arithmetic, eps, row);
    ErrorTally tally(dtype, 1);
    for_stretches(row, [&](std::int64_t at, std::size_t count) {
      inputs.resize(count);
      values.resize(count);
      row.read(at, inputs);
      run.output(at, values);
      for (std::size_t i = 0; i < count; ++i)
        tally.add(stored(dtype, arithmetic.type, values[i]), right.output(inputs[i]));
    });
    Result r = start(tag, op == Operation::layernorm ? "layernorm" : "rmsnorm",
                     op == Operation::layernorm ? to_string(choice.method) : "mean_square", choice.summation, dtype,
                     arithmetic, row.size());
    fill(r, tally, {});
    forgive_expected(r, tally.kind_mismatch_count);
    r.negative_count = run.negative_variance() ? 1 : 0;  // of the raw variance, before the clamp
    r.kappa = static_cast<double>(reference.kappa);
    results.push_back(std::move(r));
  }
  return results;
}

}  // namespace rowtune::stability
