#include "stability/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rowtune::stability {

bool matches(const Query& q, const Result& r) {
  const auto same = [](const std::string& wanted, const std::string& have) { return wanted.empty() || wanted == have; };
  return same(q.experiment, r.experiment) && same(q.test_case, r.test_case) && same(q.op, r.op) &&
         same(q.method, r.method) && same(q.order, r.order) && (!q.dtype || *q.dtype == r.dtype) &&
         (!q.arithmetic || *q.arithmetic == r.arithmetic.type);
}

std::vector<const Result*> select(const std::vector<Result>& results, const Query& query) {
  std::vector<const Result*> found;
  for (const Result& r : results)
    if (matches(query, r)) found.push_back(&r);
  return found;
}

const Result* find_one(const std::vector<Result>& results, const Query& query) {
  const std::vector<const Result*> found = select(results, query);
  return found.size() == 1 ? found.front() : nullptr;
}

BoundCheck check_bounds(const std::vector<Result>& results) {
  BoundCheck check;
  for (const Result& r : results) {
    if (r.bound_kind == BoundKind::heuristic) ++check.heuristic;
    if (r.bound_kind != BoundKind::proven) continue;
    ++check.proven;
    if (r.bound_exceeded()) {
      ++check.exceeded;
      check.exceeding.push_back(&r);
    }
    if (r.rel_error && r.bound && *r.bound > 0) check.closest = std::max(check.closest, *r.rel_error / *r.bound);
  }
  return check;
}

std::string failure_in_words(const Result& r) {
  if (r.nan_count > 0) return "NaN";
  if (r.inf_count > 0) return "inf";
  if (r.negative_count > 0) return "negative";
  if (r.false_zero_count > 0) return "false zero";
  return fmt::format("error {:.1g}", r.rel_error.value_or(0));
}

std::vector<FirstFailure> first_failures(const std::vector<Result>& results, const std::string& experiment,
                                         const std::string& op, int direction) {
  std::vector<FirstFailure> all;
  for (const Result& r : results) {
    if (r.experiment != experiment || r.op != op || !r.factor_value || *r.factor_value * direction < 0) continue;
    const auto same = [&](const FirstFailure& f) {
      return f.method == r.method && f.order == r.order && f.dtype == r.dtype && f.arithmetic == r.arithmetic.type;
    };
    auto entry = std::find_if(all.begin(), all.end(), same);
    if (entry == all.end()) {
      all.push_back({experiment, op, r.method, r.order, r.dtype, r.arithmetic.type, {}, {}, *r.factor_value, ""});
      entry = all.end() - 1;
    }
    if (std::fabs(*r.factor_value) > std::fabs(entry->last)) entry->last = *r.factor_value;
    if (r.failed() && (!entry->at || std::fabs(*r.factor_value) < std::fabs(*entry->at))) {
      entry->at = r.factor_value;
      entry->at_kappa = r.kappa;
      entry->how = failure_in_words(r);
    }
  }
  return all;
}

std::vector<CaseSummary> summarise_cases(const std::vector<Result>& results) {
  std::vector<CaseSummary> all;
  for (const Result& r : results) {
    if (r.experiment != "cases") continue;
    if (all.empty() || all.back().id != r.test_case) {
      all.emplace_back();
      all.back().id = r.test_case;
      all.back().op = r.op;
      all.back().dtype = r.dtype;
    }
    CaseSummary& summary = all.back();
    const bool right = r.note.rfind("right", 0) == 0, kernels = r.note.find("(kernels)") != std::string::npos;
    (kernels ? summary.kernels : summary.others) += 1;
    (kernels ? summary.kernels_right : summary.others_right) += right;
    if (!right) summary.wrong.push_back(fmt::format("{} {} ({})", r.method, r.order, to_string(r.arithmetic.type)));
  }
  return all;
}

StrdScore score_strd(const std::vector<Result>& results, const std::string& method, const std::string& order,
                     bool against_certified) {
  StrdScore score;
  for (const Result& r : results) {
    if (!matches({"strd", "", "sd", method, order, Dtype::f64, Dtype::f64}, r)) continue;
    const double lre = (against_certified ? r.lre_certified : r.lre).value_or(0);
    score.least = score.sets == 0 ? lre : std::min(score.least, lre);
    score.average += lre;
    ++score.sets;
  }
  if (score.sets > 0) score.average /= score.sets;
  return score;
}

}  // namespace rowtune::stability
