#include "stability/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stability/comparisons.hpp"
#include "stability/formats.hpp"
#include "stability/norms.hpp"

namespace rowtune::stability {
namespace {

constexpr double C = 4;

/// What a tolerance depends on besides the value.
struct Setting {
  double h = 0, u = 0;
  double extra = 0;  ///< half an ulp is added apart; this is the subnormal, or what a flushing exponential may lose
};

class Judge {
 public:
  Judge(const KnownCase& known, CaseVerdict& verdict) : known_(known), verdict_(verdict) {}
  /// `index` of an output, or -1 for a statistic.
  void compare(const char* quantity, std::int64_t index, double got, const Expected& known_value,
               long double tolerance) {
    const long double expected = known_value.value;
    tolerance = (known_.tol >= 0 ? static_cast<long double>(known_.tol) : tolerance) + known_value.rounding;
    double score = 0;
    if (!std::isfinite(expected) || !std::isfinite(got)) {
      const bool same = std::isnan(expected) ? std::isnan(got) : static_cast<long double>(got) == expected;
      score = same ? 0 : std::numeric_limits<double>::infinity();
    } else {
      const long double error = std::fabs(static_cast<long double>(got) - expected);
      score = error == 0 ? 0 : static_cast<double>(error / tolerance);
    }
    if (!(score <= 1)) verdict_.right = false;
    if (verdict_.detail.empty() || !(score <= verdict_.worst)) {
      verdict_.worst = score;
      const std::string which = index < 0 ? quantity : fmt::format("{}[{}]", quantity, index);
      verdict_.detail = fmt::format("{} got {} expected {}", which, got, static_cast<double>(expected));
    }
  }
  /// Half an ulp of the output dtype at the value and the setting's extra.
  long double rounding(const Setting& s, long double expected) const {
    return 0.5L * ulp_at(known_.dtype, expected) + static_cast<long double>(s.extra);
  }

 private:
  const KnownCase& known_;
  CaseVerdict& verdict_;
};

Setting setting_of(const KnownCase& known, const ArithmeticChoice& arithmetic, double depth) {
  const bool flushes = arithmetic.exponential == Exponential::fast && arithmetic.type == Dtype::f32;
  return {depth, format_of(arithmetic.type).unit_roundoff,
          flushes ? format_of(Dtype::f32).smallest_normal : format_of(known.dtype).smallest_nonzero};
}

CaseVerdict start(const KnownCase& known, std::string method, const Summation& summation,
                  const ArithmeticChoice& arithmetic) {
  CaseVerdict v;
  v.id = known.id;
  v.op = known.op;
  v.method = std::move(method);
  v.order = to_string(summation);
  v.dtype = known.dtype;
  v.arithmetic = arithmetic.type;
  v.fast_exponential = arithmetic.exponential == Exponential::fast;
  return v;
}

/// Kernels compute in fp32 (f64 data, which no kernel takes, in f64): never in the low type.
bool kernel_arithmetic(const ArithmeticChoice& a) { return a.type == Dtype::f32 || a.type == Dtype::f64; }

void judge_variance(const KnownCase& known, const MomentsReference& reference, const MomentsChoice& choice,
                    const ArithmeticChoice& arithmetic, CaseVerdict& verdict) {
  const MomentsValue got = run_moments(choice, arithmetic, MemoryRow(known.input));
  const Setting s = setting_of(known, arithmetic, depth_of(choice.summation, reference.n));
  Judge judge(known, verdict);
  const long double hu = s.h * s.u;
  const auto variance = [&](const char* name, double value) {
    const auto expected = known.expected.find(name);
    if (expected == known.expected.end()) return;
    const long double v = expected->second.value;
    // k var = rms sd: written so that a variance of 0 has a tolerance too.
    const long double conditioned = std::fabs(v) + reference.rms * std::sqrt(std::fabs(v));
    judge.compare(name, -1, value, expected->second,
                  C * (hu * conditioned + hu * reference.rms * hu * reference.rms) + judge.rounding(s, v));
  };
  variance("var_pop", got.variance);
  variance("var_sample", got.sample_variance);
  if (const auto expected = known.expected.find("mean"); expected != known.expected.end()) {
    const long double m = expected->second.value;
    judge.compare("mean", -1, got.mean, expected->second,
                  C * hu * std::max({1.0L, std::fabs(m), reference.rms}) + judge.rounding(s, m));
  }
}

void judge_softmax(const KnownCase& known, const SoftmaxReference& reference, long double rms,
                   const SoftmaxChoice& choice, const ArithmeticChoice& arithmetic, CaseVerdict& verdict) {
  const MemoryRow row(known.input);
  const SoftmaxRun run(choice, arithmetic, row);
  const Setting s = setting_of(known, arithmetic, depth_of(choice, reference.n));
  Judge judge(known, verdict);
  const bool logarithm = known.op == "log_softmax";
  if (!known.output.empty()) {
    std::vector<double> out(known.input.size());
    FloatFlags flags;
    if (logarithm)
      run.log_softmax(0, out, flags);
    else
      run.softmax(0, out, flags);
    const long double range = std::min(reference.range(), 100.0L);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const long double v = known.output[i].value;
      const long double size = std::max(std::fabs(v), logarithm ? 1.0L : 0.0L);
      judge.compare("output", static_cast<std::int64_t>(i), stored(known.dtype, arithmetic.type, out[i]),
                    known.output[i], C * s.u * (s.h + range) * size + judge.rounding(s, v));
    }
  }
  if (const auto expected = known.expected.find("logsumexp"); expected != known.expected.end()) {
    const long double v = expected->second.value;
    judge.compare("logsumexp", -1, run.state().log_sum_exp, expected->second,
                  C * s.h * s.u * std::max({1.0L, std::fabs(v), rms}) + judge.rounding(s, v));
  }
}

void judge_norm(const KnownCase& known, Operation op, const NormReference& reference, const MomentsChoice& choice,
                const ArithmeticChoice& arithmetic, CaseVerdict& verdict) {
  const MemoryRow row(known.input);
  const NormRun run(op, choice, arithmetic, static_cast<double>(known.eps), row);
  const Setting s = setting_of(known, arithmetic, depth_of(choice.summation, row.size()));
  Judge judge(known, verdict);
  std::vector<double> out(known.input.size());
  run.output(0, out);
  for (std::size_t i = 0; i < known.output.size(); ++i) {
    const long double v = known.output[i].value;
    judge.compare("output", static_cast<std::int64_t>(i), stored(known.dtype, arithmetic.type, out[i]), known.output[i],
                  C * s.u * (1 + s.h * reference.rms * reference.rstd) + judge.rounding(s, v));
  }
}

std::vector<ArithmeticChoice> arithmetics(const KnownCase& known) {
  if (known.dtype == Dtype::f64) return {{Dtype::f64}};
  std::vector<ArithmeticChoice> all = {{Dtype::f32}};
  if (known.dtype != Dtype::f32) all.push_back({known.dtype});
  return all;
}

std::vector<MomentsChoice> moments_choices() {
  std::vector<MomentsChoice> choices = all_moments(256);
  for (const MomentsChoice& choice : all_moments(32))
    if (choice.summation.order == Order::lanes) choices.push_back(choice);
  return choices;
}

std::vector<SoftmaxChoice> softmax_choices(bool logarithm) {
  std::vector<SoftmaxChoice> choices = logarithm ? all_log_softmax(256) : all_softmax(256);
  for (const SoftmaxChoice& choice : all_softmax(32))
    if (choice.summation.order == Order::lanes) choices.push_back(choice);
  return choices;
}

std::vector<CaseVerdict> judge_moments_case(const KnownCase& known) {
  const MomentsReference moments = reference_moments(MemoryRow(known.input));
  const Operation op = known.op == "rmsnorm" ? Operation::rmsnorm : Operation::layernorm;
  const NormReference norm =
      op == Operation::rmsnorm ? reference_rmsnorm(moments, known.eps) : reference_layernorm(moments, known.eps);
  std::vector<CaseVerdict> verdicts;
  for (const ArithmeticChoice& arithmetic : arithmetics(known))
    for (const MomentsChoice& choice : moments_choices()) {
      if (known.op == "rmsnorm" && choice.method != MomentsMethod::one_pass) continue;
      const std::string name = known.op == "rmsnorm" ? "mean_square" : to_string(choice.method);
      CaseVerdict v = start(known, name, choice.summation, arithmetic);
      const bool order_used = choice.summation.order == Order::lanes;
      v.used_by_kernels =
          kernel_arithmetic(arithmetic) && (known.op == "rmsnorm" ? order_used : used_by_kernels(choice));
      if (known.op == "variance")
        judge_variance(known, moments, choice, arithmetic, v);
      else
        judge_norm(known, op, norm, choice, arithmetic, v);
      verdicts.push_back(std::move(v));
    }
  return verdicts;
}

std::vector<CaseVerdict> judge_softmax_case(const KnownCase& known) {
  const MemoryRow row(known.input);
  const SoftmaxReference reference = reference_softmax(row);
  const long double rms = reference_moments(row).rms;
  std::vector<CaseVerdict> verdicts;
  for (ArithmeticChoice arithmetic : arithmetics(known))
    for (const Exponential exponential : {Exponential::accurate, Exponential::fast}) {
      if (exponential == Exponential::fast && arithmetic.type != Dtype::f32) continue;
      arithmetic.exponential = exponential;
      for (const SoftmaxChoice& choice : softmax_choices(known.op == "log_softmax")) {
        CaseVerdict v = start(known, method_name(choice), choice.summation, arithmetic);
        v.used_by_kernels = kernel_arithmetic(arithmetic) && used_by_kernels(choice);
        judge_softmax(known, reference, std::isnan(rms) ? 0 : rms, choice, arithmetic, v);
        verdicts.push_back(std::move(v));
      }
    }
  return verdicts;
}

}  // namespace

std::vector<CaseVerdict> judge_case(const KnownCase& known) {
  return known.op == "softmax" || known.op == "log_softmax" ? judge_softmax_case(known) : judge_moments_case(known);
}

}  // namespace rowtune::stability
