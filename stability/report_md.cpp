#include "stability/report_md.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rowtune::stability {

std::string show_error(const Result* r) {
  if (r == nullptr) return "";
  if (r->nan_count > 0) return "NaN";
  if (r->inf_count > 0) return "inf";
  if (!r->rel_error)
    return r->note == "variance 0 after rounding" ? fmt::format("0 -> {:.1e}", r->value.value_or(0)) : "";
  return fmt::format("{:.1e}{}", *r->rel_error, r->negative_count > 0 ? " (negative)" : "");
}

Table error_table(const std::vector<Result>& results, const std::string& experiment, const std::string& op, Dtype dtype,
                  Dtype arithmetic, const std::vector<std::string>& only_cases) {
  std::vector<std::string> cases;
  std::vector<std::pair<std::string, std::string>> methods;
  const std::vector<const Result*> found = select(results, {experiment, "", op, "", "", dtype, arithmetic});
  for (const Result* r : found) {
    const bool wanted =
        only_cases.empty() || std::find(only_cases.begin(), only_cases.end(), r->test_case) != only_cases.end();
    if (wanted && std::find(cases.begin(), cases.end(), r->test_case) == cases.end()) cases.push_back(r->test_case);
    const std::pair<std::string, std::string> method{r->method, r->order};
    if (std::find(methods.begin(), methods.end(), method) == methods.end()) methods.push_back(method);
  }
  Table table;
  table.columns = {"method", "order"};
  table.columns.insert(table.columns.end(), cases.begin(), cases.end());
  for (const auto& [method, order] : methods) {
    std::vector<std::string> row = {method, order};
    for (const std::string& test_case : cases) {
      const auto at = std::find_if(found.begin(), found.end(), [&, m = method, o = order](const Result* r) {
        return r->test_case == test_case && r->method == m && r->order == o;
      });
      row.push_back(show_error(at == found.end() ? nullptr : *at));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table failure_table(const std::vector<FirstFailure>& failures, const std::string& format) {
  Table table;
  table.columns = {"method", "order"};
  for (const FirstFailure& f : failures) {
    const std::string column = f.dtype == f.arithmetic
                                   ? fmt::format("{0}, {0} sums", to_string(f.dtype))
                                   : fmt::format("{}, {} sums", to_string(f.dtype), to_string(f.arithmetic));
    std::size_t at =
        static_cast<std::size_t>(std::find(table.columns.begin(), table.columns.end(), column) - table.columns.begin());
    if (at == table.columns.size()) table.columns.push_back(column);
    auto row = std::find_if(table.rows.begin(), table.rows.end(),
                            [&](const std::vector<std::string>& r) { return r[0] == f.method && r[1] == f.order; });
    if (row == table.rows.end()) row = table.rows.insert(row, {f.method, f.order});
    row->resize(std::max(row->size(), at + 1));
    (*row)[at] = f.at ? fmt::format("{}: {}", fmt::format(fmt::runtime(format), *f.at), f.how)
                      : fmt::format("none to {}", fmt::format(fmt::runtime(format), f.last));
  }
  for (std::vector<std::string>& row : table.rows) row.resize(table.columns.size());
  return table;
}

namespace {

const Result* merit(const std::vector<Result>& results, const char* test_case, const char* method, const char* order) {
  return find_one(results, {"merit", test_case, "variance", method, order, Dtype::f32, Dtype::f32});
}

std::int64_t count_negative(const std::vector<Result>& results) {
  return std::count_if(results.begin(), results.end(), [](const Result& r) {
    return r.op == "variance" && r.method == "one_pass" && r.negative_count > 0;
  });
}

/// The worst of a method on the rows that the kernels meet, at a mean of 1e4 standard deviations.
double worst_on_kernel_rows(const std::vector<Result>& results, const char* method) {
  double worst = 0;
  for (const Result& r : results)
    if (r.experiment == "kernel_rows" && r.method == method && r.test_case.ends_with("_mean_10000") && r.rel_error)
      worst = std::max(worst, *r.rel_error);
  return worst;
}

std::string kernel_rows_sentence(const std::vector<Result>& results) {
  std::int64_t longest = 0;
  for (const Result& r : results)
    if (r.experiment == "kernel_rows") longest = std::max(longest, r.n);
  return fmt::format(
      "What follows for the kernels (rows up to {} columns, 32 to 8192 lanes, mean 1e4 standard deviations): two-pass "
      "on "
      "the cached row is off by at most {:.0e}, with the correction by {:.0e}, Welford by {:.0e}, one-pass by {:.0e}. "
      "With their depth h = ceil(n / lanes) + log2 lanes, h u kappa is below 1 there up to 131072 columns on 256 "
      "lanes; "
      "longer rows need 1024 lanes or more.",
      longest, worst_on_kernel_rows(results, "two_pass"), worst_on_kernel_rows(results, "corrected_two_pass"),
      worst_on_kernel_rows(results, "welford"), worst_on_kernel_rows(results, "one_pass"));
}

std::string merit_sentence(const std::vector<Result>& results, const char* test_case, const char* label, double kappa) {
  const auto winner = [&](const char* order) {
    const Result *two_pass = merit(results, test_case, "two_pass", order),
                 *welford = merit(results, test_case, "welford", order);
    if (two_pass == nullptr || welford == nullptr || !two_pass->rel_error || !welford->rel_error) return "neither";
    return *two_pass->rel_error < *welford->rel_error ? "two-pass" : "Welford";
  };
  const double reach = depth_of(Summation{Order::lanes, 256}, 1 << 20) * 0x1p-24 * kappa;
  const auto e = [&](const char* method, const char* order) {
    return show_error(merit(results, test_case, method, order));
  };
  return fmt::format(
      "{} in f32, 2^20 numbers: with one running sum {} wins (two-pass off by {}, Welford by {}); with 256 lanes and a "
      "tree {} wins ({} and {}; h u kappa = {:.2g}, and two-pass needs it near 1 or below); pairwise two-pass beats "
      "both "
      "({}). The order of the sum decides, not the formula.",
      label, winner("sequential"), e("two_pass", "sequential"), e("welford", "sequential"), winner("lanes256"),
      e("two_pass", "lanes256"), e("welford", "lanes256"), reach, e("two_pass", "pairwise"));
}

double threshold_of(const std::vector<Result>& results, const char* test_case, Dtype type, Exponential exponential) {
  for (const Result& r : results)
    if (r.experiment == "threshold" && r.test_case == test_case && r.dtype == type &&
        r.arithmetic.exponential == exponential)
      return r.value.value_or(std::nan(""));
  return std::nan("");
}

}  // namespace

std::vector<std::string> findings_in_words(const std::vector<Result>& results, const StudyFacts&) {
  std::vector<std::string> lines;
  const BoundCheck bounds = check_bounds(results);
  lines.push_back(fmt::format(
      "{} results; {} stand beside a proven bound, {} exceed it (the closest reaches {:.0f} % of its bound).",
      results.size(), bounds.proven, bounds.exceeded, 100 * bounds.closest));
  lines.push_back(merit_sentence(results, "mean_1e+04_shuffled", "Mean 1e4 standard deviations", 1e4));
  lines.push_back(merit_sentence(results, "mean_1e+06_shuffled", "Mean 1e6 standard deviations", 1e6));
  const auto sorted = [&](const char* method, const char* order) {
    return show_error(merit(results, "mean_1e+04_ascending", method, order));
  };
  lines.push_back(
      fmt::format("The same numbers at 1e4, sorted: Welford with one running mean is off by {}, over 256 lanes by {}; "
                  "two-pass over "
                  "256 lanes by {}, pairwise by {}.",
                  sorted("welford", "sequential"), sorted("welford", "lanes256"), sorted("two_pass", "lanes256"),
                  sorted("two_pass", "pairwise")));
  lines.push_back(kernel_rows_sentence(results));
  lines.push_back(
      fmt::format("The textbook one-pass variance came out negative in {} cells.", count_negative(results)));
  const auto first = [&](const char* test_case, Dtype type, Exponential e = Exponential::accurate) {
    return threshold_of(results, test_case, type, e);
  };
  lines.push_back(fmt::format(
      "Softmax without the shift breaks at a single logit of {:.4f} with f32 arithmetic and {:.3f} with f16 "
      "arithmetic; "
      "1024 equal logits break it at {:.4f} and {:.4f}, earlier by about ln 1024 = 6.931. Below {:.3f} (f32; {:.3f} "
      "with the exponential that flushes) a row is 0/0.",
      first("one_dominant_n_16", Dtype::f32), first("one_dominant_n_16", Dtype::f16), first("equal_n_1024", Dtype::f32),
      first("equal_n_1024", Dtype::f16), first("equal_negative_n_1024", Dtype::f32),
      first("equal_negative_n_1024", Dtype::f32, Exponential::fast)));
  for (const Result& r : results)
    if (r.experiment == "logits" && (r.arithmetic.type == Dtype::f16))
      lines.push_back(fmt::format("Public logits, {}: {}.", r.method, r.note));
  const StrdScore score = score_strd(results, "corrected_two_pass", "pairwise", true);
  lines.push_back(
      fmt::format("NIST StRD, f64, corrected two-pass, pairwise: LRE of the certified sd {:.1f} on average, {:.1f} at "
                  "least, over {} "
                  "sets.",
                  score.average, score.least, score.sets));
  std::size_t cases = 0, all_right = 0, naive_wrong = 0;
  for (const CaseSummary& c : summarise_cases(results)) {
    ++cases;
    all_right += c.kernels == c.kernels_right;
    naive_wrong += c.others != c.others_right;
  }
  lines.push_back(fmt::format(
      "Cases with known answers: the forms that the kernels use are right on {} of {}; other forms are wrong on {}.",
      all_right, cases, naive_wrong));
  return lines;
}

namespace {

std::string how_to_choose() {
  return "## How to choose\n\n"
         "* Give the sum many accumulators before worrying about the formula. A sum of depth h (the additions that one "
         "element goes through) loses about h u; one running sum has h = n, 256 lanes and a tree have "
         "h = n / 256 + 8.\n"
         "* With lanes, use two-pass when the row is at hand a second time (in registers, shared memory or cache). Its "
         "error grows with (h u kappa)^2, so it is safe while h u kappa stays well below 1. Adding the correction "
         "costs "
         "one more sum and takes most of the rest away.\n"
         "* With one pass only, use Welford in lanes with Chan's merge, or the one-pass sums on x - x[0] where the "
         "first "
         "element is typical. Never the raw sums of squares: they lose kappa^2, and can go negative.\n"
         "* Sorted or drifting data is Welford's bad case: its running mean lags in one direction.\n"
         "* Softmax always needs the shift by the maximum. The online form costs a little accuracy per rescale and "
         "reads "
         "the row once less; a split row must merge states, with care for parts that are wholly masked.\n"
         "* log_softmax is (x - max) - log(sum). Folding max into log(sum) rounds at the size of max.\n"
         "* Sums in f16 or bf16 are the largest error there is: rounding the input alone costs half an ulp of the "
         "input, low sums lose everything once a term is below half an ulp of the sum.\n\n";
}

std::string how_measured(const std::vector<Result>& results, const StudyFacts& facts) {
  const BoundCheck bounds = check_bounds(results);
  return fmt::format(
      "## What was asked, and how it was measured\n\n"
      "How wrong is each way to compute a variance, a norm or a softmax, with the sums in the orders that hardware "
      "uses, in f16, bf16, f32 and f64? Each experiment varies one factor around a stated centre: for variance 4096 "
      "normal numbers with mean 100 and standard deviation 1, for softmax 1024 logits.\n\n"
      "Data is rounded to the dtype first; every error is against the exact answer for the *rounded* data ({}; "
      "corrected "
      "two-pass, shifted and compensated sums; validated against 100-digit arithmetic), unrounded, so that no error "
      "hides in a second rounding. f16 and bf16 data with f32 sums shows what rounding the input costs; sums in the "
      "low "
      "type are separate. kappa = sqrt(1 + mean^2 / var) is the condition number the rounded data really has. "
      "`lanes256` sums as a block of 256 threads does: lane i takes elements i, i + 256, ..., then a tree over each "
      "warp, then over warps. The code is compiled without fast-math and without contraction; fused multiply-add is "
      "used only where a result says so.\n\n"
      "A method *fails* when fewer than two decimal digits are right, or the result is NaN, infinite or negative. "
      "Bounds are `proven` (for n u < 0.1 and without overflow or underflow, else left empty) or `heuristic` curves "
      "that "
      "are not proofs. In this run {} results stand beside a proven bound and {} exceed it.\n\n"
      "Run: {}, seed {}, {} lanes, {} results in stability.csv.\n\n",
      facts.precision, bounds.proven, bounds.exceeded, facts.options.quick ? "quick" : "default", facts.options.seed,
      facts.options.lanes, results.size());
}

}  // namespace

std::string markdown_report(const std::vector<Result>& results, const StudyFacts& facts) {
  std::string text = "# Numerical stability of variance, norms and softmax\n\n## In short\n\n";
  for (const std::string& line : findings_in_words(results, facts)) text += fmt::format("* {}\n", line);
  text += fmt::format("\n{}{}", how_measured(results, facts), how_to_choose());
  for (const Result* r : check_bounds(results).exceeding)
    text += fmt::format("**Bound exceeded**: {} {} {} {} {}: error {:.3g}, bound {:.3g}\n\n", r->experiment,
                        r->test_case, r->op, r->method, r->order, r->rel_error.value_or(0), r->bound.value_or(0));
  text += markdown_variance(results) + markdown_softmax(results) + markdown_data(results);
  text +=
      "## The columns of stability.csv\n\n"
      "`rel_error` relative to the exact answer for the rounded data (softmax: the worst output in the normal range; "
      "log_softmax and norms: relative to max(1, |output|)); `ulp_error` and `mean_ulp_error` in units of the last "
      "place "
      "of the stored dtype, for statistics of the arithmetic's; `lre` correct digits, at most 15; `lre_ceiling` what "
      "the "
      "exact statistic of the rounded data scores against the certified value, `lre_certified` what the method scores "
      "against it; `nan_count`, `inf_count`, `negative_count`, `false_zero_count` of values that should not be so; "
      "`bound_ratio` is error / bound, `bound_exceeded` 1 where a proven bound did not hold; `arithmetic` the type of "
      "the sums; `factor` what the experiment varies. Non-finite values are `nan` and `inf`; "
      "an "
      "empty field does not apply.\n";
  return text;
}

}  // namespace rowtune::stability
