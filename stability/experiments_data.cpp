// Certified data (NIST StRD), public logits, and the public cases with known answers.

#include <fmt/format.h>

#include <cmath>

#include "stability/cases.hpp"
#include "stability/comparisons.hpp"
#include "stability/datasets.hpp"
#include "stability/decimal.hpp"
#include "stability/formats.hpp"
#include "stability/study.hpp"

namespace rowtune::stability {
namespace {

bool all_finite(const std::vector<double>& values) {
  for (const double v : values)
    if (!std::isfinite(v)) return false;
  return true;
}

double relative_to(double value, long double right) {
  return static_cast<double>(std::fabs(static_cast<long double>(value) - right) / std::fabs(right));
}

/// The sample standard deviation by each method, against the exact one of the rounded data and the certified one.
std::vector<Result> certified(const CertifiedSet& set, const Precision& p, int lanes) {
  const std::vector<double> data = rounded_values(set, p.dtype);
  const Tag tag{"strd", set.name, "set", std::nullopt};
  if (!all_finite(data)) {
    Result r;
    r.experiment = tag.experiment;
    r.test_case = tag.test_case;
    r.op = "sd";
    r.method = "none";
    r.order = "none";
    r.dtype = p.dtype;
    r.arithmetic = {p.arithmetic};
    r.n = static_cast<std::int64_t>(data.size());
    r.note = fmt::format("does not fit {}", to_string(p.dtype));
    return {r};
  }
  const MemoryRow row(data);
  const MomentsReference reference = reference_moments(row);
  const long double certified_sd = decimal_to_long_double(set.sample_sd);
  const double ceiling = lre_of(static_cast<double>(std::fabs(reference.sample_sd - certified_sd) / certified_sd));
  std::vector<Result> results = compare_variance(tag, p.dtype, {p.arithmetic}, row, reference, all_moments(lanes));
  const std::vector<MomentsChoice> choices = all_moments(lanes);
  for (std::size_t i = 0; i < results.size(); ++i) {
    Result& r = results[i];
    const double sd = run_moments(choices[i], {p.arithmetic}, row).sample_sd;
    r.op = "sd";
    r.value = sd;
    r.reference = static_cast<double>(reference.sample_sd);
    r.lre_ceiling = ceiling;
    r.lre_certified = lre_of(relative_to(sd, certified_sd));
    r.bound.reset();  // stated for the variance, not for its root
    r.bound_kind = BoundKind::none;
    r.rel_error.reset();
    r.lre.reset();
    r.ulp_error.reset();
    r.mean_ulp_error.reset();
    if (reference.sample_sd == 0) continue;
    r.rel_error = relative_to(sd, reference.sample_sd);
    r.lre = lre_of(*r.rel_error);
    r.ulp_error = static_cast<double>(std::fabs(static_cast<long double>(sd) - reference.sample_sd) /
                                      ulp_at(p.arithmetic, reference.sample_sd));
    if (std::isnan(sd)) r.nan_count = 1;
  }
  return results;
}

/// exp stored in f16, summed in f32: what a mixed-precision kernel without the shift does.
bool overflows_in_mixed(const std::vector<double>& logits) {
  float sum = 0;
  bool overflow = false;
  for (const double x : logits) {
    const float e = Half(std::exp(static_cast<float>(x))).value();
    overflow |= std::isinf(e);
    sum += e;
  }
  return overflow || std::isinf(sum);
}

struct LogitsMethod {
  const char* name;
  const char* note;
  bool mixed;
  SoftmaxChoice choice;
  Dtype arithmetic;
};

/// How many of the 2,500 rows overflow, and the worst output error over the rows that do not.
Result logits_result(const LogitsMethod& method) {
  Result r;
  r.experiment = "logits";
  r.test_case = "lenet_mnist_2500x10";
  r.op = "softmax";
  r.method = method.name;
  r.order = "sequential";
  r.dtype = Dtype::f16;
  r.arithmetic = {method.arithmetic};
  r.n = 10;
  r.factor = "rows_that_overflow";
  std::int64_t rows = 0, overflowed = 0;
  ErrorTally tally(Dtype::f16);
  for (const std::vector<std::string>& texts : public_logits()) {
    std::vector<double> logits;
    for (const std::string& text : texts) logits.push_back(decimal_to(Dtype::f16, text));
    const MemoryRow row(logits);
    ++rows;
    if (method.mixed) {
      overflowed += overflows_in_mixed(logits);
      continue;
    }
    const SoftmaxRun run(method.choice, {method.arithmetic}, row);
    FloatFlags flags;
    std::vector<double> out(logits.size());
    run.softmax(0, out, flags);
    if (!std::isfinite(run.state().sum)) {
      ++overflowed;
      continue;
    }
    const SoftmaxReference reference = reference_softmax(row);
    for (std::size_t i = 0; i < out.size(); ++i)
      tally.add(stored(Dtype::f16, method.arithmetic, out[i]), reference.softmax(logits[i]));
  }
  if (!method.mixed) {
    r.rel_error = tally.max_relative;
    r.ulp_error = tally.max_ulp;
    r.mean_ulp_error = tally.mean_ulp();
    r.nan_count = tally.nan_count;
    r.false_zero_count = tally.false_zero_count;
  }
  r.inf_count = overflowed;
  r.factor_value = static_cast<double>(overflowed);
  r.value = r.factor_value;
  r.note = fmt::format("{} of {} rows overflow: {}", overflowed, rows, method.note);
  return r;
}

std::vector<Result> logits_results() {
  const SoftmaxChoice unsafe{SoftmaxMethod::unsafe, {}}, three_pass{SoftmaxMethod::three_pass, {}},
      online{SoftmaxMethod::online, {}};
  const LogitsMethod methods[] = {{"unsafe", "exp and sums in f16", false, unsafe, Dtype::f16},
                                  {"unsafe_f32_sums", "exp stored in f16, sums in f32", true, unsafe, Dtype::f16},
                                  {"unsafe", "exp and sums in f32", false, unsafe, Dtype::f32},
                                  {"three_pass", "shifted, all in f16", false, three_pass, Dtype::f16},
                                  {"online", "shifted, all in f16", false, online, Dtype::f16},
                                  {"three_pass", "shifted, sums in f32", false, three_pass, Dtype::f32},
                                  {"online", "shifted, sums in f32", false, online, Dtype::f32}};
  std::vector<Result> all;
  for (const LogitsMethod& method : methods) all.push_back(logits_result(method));
  return all;
}

std::vector<Result> case_results(const KnownCase& known) {
  std::vector<Result> all;
  for (const CaseVerdict& v : judge_case(known)) {
    Result r;
    r.experiment = "cases";
    r.test_case = v.id;
    r.op = v.op;
    r.method = v.method;
    r.order = v.order;
    r.dtype = v.dtype;
    r.arithmetic = {v.arithmetic, false, false, v.fast_exponential ? Exponential::fast : Exponential::accurate};
    r.n = static_cast<std::int64_t>(known.input.size());
    r.factor = "error_over_tolerance";
    r.factor_value = v.worst;
    r.note = fmt::format("{}{}: {}", v.right ? "right" : "wrong", v.used_by_kernels ? " (kernels)" : "", v.detail);
    all.push_back(std::move(r));
  }
  return all;
}

}  // namespace

std::vector<Cell> dataset_cells(const StudyOptions& o) {
  std::vector<Cell> cells;
  for (const CertifiedSet& set : certified_sets())
    cells.push_back({"strd", set.name, [&set, o] {
                       std::vector<Result> all;
                       for (const Precision& p : all_precisions()) append(all, certified(set, p, o.lanes));
                       return all;
                     }});
  cells.push_back({"logits", "2500 x 10", logits_results});
  for (const KnownCase& known : parse_cases(public_cases(), "the public cases"))
    cells.push_back({"cases", known.id, [known] { return case_results(known); }});
  return cells;
}

}  // namespace rowtune::stability
