// The sections of stability.md.

#include <fmt/format.h>

#include <cmath>

#include "stability/report_md.hpp"

namespace rowtune::stability {
namespace {

std::string section(const std::string& title, const std::string& words, const Table& table) {
  return fmt::format("### {}\n\n{}\n\n{}\n", title, words, as_markdown(table));
}

std::vector<std::string> every_other_case(const std::vector<Result>& results, const std::string& experiment,
                                          std::size_t most) {
  std::vector<std::string> cases;
  for (const Result& r : results)
    if (r.experiment == experiment && (cases.empty() || cases.back() != r.test_case) &&
        std::find(cases.begin(), cases.end(), r.test_case) == cases.end())
      cases.push_back(r.test_case);
  std::vector<std::string> some;
  const std::size_t step = (cases.size() + most - 1) / most;
  for (std::size_t i = 0; step > 0 && i < cases.size(); i += step) some.push_back(cases[i]);
  return some;
}

/// Rows of kernel_rows: the two forms the kernels use and the one-pass form, by row length and lanes.
Table kernel_rows_table(const std::vector<Result>& results) {
  Table table;
  table.columns = {"row", "lanes", "depth h", "one_pass", "two_pass", "corrected_two_pass", "welford"};
  std::string last;
  for (const Result& r : results) {
    if (r.experiment != "kernel_rows" || r.method != "one_pass") continue;
    std::vector<std::string> row = {
        r.test_case, fmt::format("{}", *r.factor_value),
        fmt::format("{}", depth_of({Order::lanes, static_cast<int>(*r.factor_value)}, r.n))};
    for (const char* method : {"one_pass", "two_pass", "corrected_two_pass", "welford"})
      row.push_back(show_error(find_one(results, {"kernel_rows", r.test_case, "variance", method, r.order, {}, {}})));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// What fused multiply-add and the reciprocal change: f32, mean 1000.
Table instructions_table(const std::vector<Result>& results) {
  Table table;
  table.columns = {
      "method", "order", "fma off, division", "fma on, division", "fma off, reciprocal", "fma on, reciprocal"};
  for (const Result* r : select(results, {"instructions", "mean_1000_fma_off_division", "", "", "", Dtype::f32, {}})) {
    std::vector<std::string> row = {r->method, r->order};
    for (const char* test_case : {"mean_1000_fma_off_division", "mean_1000_fma_on_division",
                                  "mean_1000_fma_off_reciprocal", "mean_1000_fma_on_reciprocal"})
      row.push_back(
          show_error(find_one(results, {"instructions", test_case, "variance", r->method, r->order, Dtype::f32, {}})));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table low_precision_table(const std::vector<Result>& results) {
  Table table;
  table.columns = {"n", "data", "sums in f32", "sums in the low type"};
  for (const Result& r : results)
    if (r.experiment == "length" && r.method == "two_pass" && r.order == "sequential" &&
        (r.arithmetic.type == Dtype::f16 || r.arithmetic.type == Dtype::bf16))
      table.rows.push_back({fmt::format("{}", r.n), to_string(r.dtype),
                            show_error(find_one(results, {"length", r.test_case, "variance", "two_pass", "sequential",
                                                          r.dtype, Dtype::f32})),
                            show_error(&r)});
  return table;
}

}  // namespace

std::string markdown_variance(const std::vector<Result>& results) {
  const Dtype f32 = Dtype::f32;
  std::string text = "## Variance\n\n";
  text += section("Order of merit on a long row",
                  "Relative error in f32 at n = 2^20, normal data with the mean at 1e4 and 1e6 standard deviations, "
                  "shuffled and sorted. Folklore ranks formulas; here the same formula spans ten orders of magnitude "
                  "with the order of its sums.",
                  error_table(results, "merit", "variance", f32, f32));
  text += section("The kernels' own orders",
                  "Relative error in f32 for rows as long as the kernels meet and as many lanes as they use: 32 (a "
                  "warp per row), 256 and 1024 (a block), 8192 (a cluster or several blocks). The depth h = "
                  "ceil(n / lanes) + log2 lanes is what counts: two-pass keeps its digits while h u kappa is well "
                  "below 1 (u = 6e-8), so with 256 lanes and 131072 columns up to a kappa of about 3e4, and more lanes "
                  "buy more. One-pass loses kappa^2 whatever the lanes.",
                  kernel_rows_table(results));
  text += section("Condition number",
                  "n = 4096, f32; the mean grows in standard deviations. The condition number achieved is in the CSV.",
                  error_table(results, "condition", "variance", f32, f32, every_other_case(results, "condition", 9)));
  text += section("Where each method first fails: mean / sd",
                  "First mean, in standard deviations, with fewer than two right digits (n = 4096).",
                  failure_table(first_failures(results, "condition", "variance", 1), "{:.2g}"));
  text += section("Length", "f32, mean 100, sd 1.",
                  error_table(results, "length", "variance", f32, f32, every_other_case(results, "length", 11)));
  text += section("Sums in the low type", "Two-pass, sequential: f16 and bf16 data, mean 100, sd 1.",
                  low_precision_table(results));
  text += section("Where each method first fails: magnitude, upwards",
                  "Mean 10, sd 1, everything multiplied by the scale; squares leave the range of f32 near 1e19.",
                  failure_table(first_failures(results, "magnitude", "variance", 1), "{:.0e}"));
  text += section("Arrangement", "The same numbers in other orders, f32.",
                  error_table(results, "arrangement", "variance", f32, f32));
  text += section("Distribution", "f32, n = 4096. `0 -> v`: the variance is exactly 0 and the method says v.",
                  error_table(results, "distribution", "variance", f32, f32));
  text += section("Fused multiply-add, division or reciprocal",
                  "f32, n = 4096, mean 1000, sd 1. Both move errors by a small factor; neither saves a formula.",
                  instructions_table(results));
  text +=
      section("LayerNorm output",
              "The whole output, f32, n = 4096, relative to max(1, |output|). A wrong variance shows fully; a wrong "
              "mean shifts everything.",
              error_table(results, "norm_output", "layernorm", f32, f32));
  text += section("RMSNorm output", "There is no mean to cancel: only the depth of the sum counts.",
                  error_table(results, "norm_output", "rmsnorm", f32, f32));
  return text;
}

namespace {

Table threshold_table(const std::vector<Result>& results) {
  Table table;
  table.columns = {"row", "arithmetic", "exponential", "first broken logit", "predicted by the range"};
  for (const Result& r : results)
    if (r.experiment == "threshold")
      table.rows.push_back({r.test_case, to_string(r.dtype),
                            r.arithmetic.exponential == Exponential::fast ? "fast (flushes)" : "accurate",
                            fmt::format("{:.8g}", r.value.value_or(0)),
                            fmt::format("{:.8g}", r.reference.value_or(0))});
  return table;
}

Table exponential_table(const std::vector<Result>& results) {
  Table table;
  table.columns = {"data", "logits, exponential, quotient, fma", "three_pass", "online", "split"};
  std::vector<std::string> seen;
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16})
    for (const Result* r : select(results, {"exponential", "", "softmax", "three_pass", "lanes256", dtype, {}})) {
      std::vector<std::string> row = {to_string(dtype), r->test_case};
      for (const char* method : {"three_pass", "online", "split"})
        row.push_back(show_error(find_one(
            results, {"exponential", r->test_case, "softmax", method, "lanes256", dtype, r->arithmetic.type})));
      table.rows.push_back(std::move(row));
    }
  return table;
}

}  // namespace

std::string markdown_softmax(const std::vector<Result>& results) {
  const Dtype f32 = Dtype::f32;
  std::string text = "## Softmax\n\n";
  text += section("Where the unshifted form breaks", "Found by bisection over the representable logits.",
                  threshold_table(results));
  text +=
      section("Range of the logits",
              "f32, 1024 logits spread evenly and symmetrically over the range. Errors are of outputs in the normal "
              "range.",
              error_table(results, "softmax_range", "softmax", f32, f32));
  text += section(
      "Offset", "f32, 1024 normal logits around the offset: shifting is what makes the rest possible.",
      error_table(results, "softmax_offset", "softmax", f32, f32, every_other_case(results, "softmax_offset", 12)));
  text += section("Where each method first fails: offset upwards", "1024 normal logits of sd 1 around the offset.",
                  failure_table(first_failures(results, "softmax_offset", "softmax", 1), "{:g}"));
  text += section("Where each method first fails: offset downwards", "The negative side: all exponentials vanish, 0/0.",
                  failure_table(first_failures(results, "softmax_offset", "softmax", -1), "{:g}"));
  text += section(
      "log_softmax against the offset",
      "Error relative to max(1, |output|): folding max into log(sum) rounds at the size of the offset.",
      error_table(results, "softmax_offset", "log_softmax", f32, f32, every_other_case(results, "softmax_offset", 12)));
  text += section("Width", "f32, normal logits of sd 3.", error_table(results, "softmax_width", "softmax", f32, f32));
  text += section("Width, sums in f16", "The sum sticks once a term is below half its last place: 2048 equal terms.",
                  error_table(results, "softmax_width", "softmax", Dtype::f16, Dtype::f16));
  text += section("Masks", "-inf in whole stretches, f32. An empty field: a row of only -inf, NaN by rule.",
                  error_table(results, "softmax_masked", "softmax", f32, f32));
  text += section("Rows that vanish",
                  "4096 equal logits, f32: each exponential is finite, their sum is not, and every "
                  "output of the unshifted form is 0 (relative error 1).",
                  error_table(results, "softmax_vanishing", "softmax", f32, f32));
  text += section("Order of the logits", "Ascending logits make the online form rescale at every step.",
                  error_table(results, "softmax_arrangement", "softmax", f32, f32));
  text += section("Exponentials, reciprocal, fused multiply-add",
                  "Lanes, outputs stored in the data's dtype. `fast` is exp2((x - max) log2 e), which loses range * u; "
                  "stored in f16 or bf16 nothing of it is left to see.",
                  exponential_table(results));
  return text;
}

namespace {

Table strd_table(const std::vector<Result>& results, Dtype dtype, Dtype arithmetic, const char* order) {
  Table table;
  table.columns = {"set", "kappa", "ceiling"};
  const std::vector<std::string> methods = {"one_pass", "shifted_one_pass", "two_pass", "corrected_two_pass",
                                            "welford"};
  table.columns.insert(table.columns.end(), methods.begin(), methods.end());
  for (const Result* r : select(results, {"strd", "", "sd", "one_pass", order, dtype, arithmetic})) {
    const bool zero = r->note == "variance 0 after rounding";
    std::vector<std::string> row = {
        r->test_case, std::isfinite(r->kappa.value_or(0)) ? fmt::format("{:.3g}", r->kappa.value_or(0)) : "inf",
        fmt::format("{:.1f}", r->lre_ceiling.value_or(0))};
    for (const std::string& method : methods) {
      const Result* m = find_one(results, {"strd", r->test_case, "sd", method, order, dtype, arithmetic});
      row.push_back(zero ? "variance 0 after rounding" : m && m->lre ? fmt::format("{:.1f}", *m->lre) : "");
    }
    table.rows.push_back(std::move(row));
  }
  for (const Result* r : select(results, {"strd", "", "sd", "none", "", dtype, arithmetic})) {
    std::vector<std::string> row(table.columns.size(), "");
    row[0] = r->test_case;
    row[1] = r->note;
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table score_table(const std::vector<Result>& results) {
  Table table;
  table.columns = {"method", "order", "average LRE, certified", "least", "average LRE, rounded data", "least"};
  for (const MomentsChoice& choice : all_moments(256)) {
    const std::string method = to_string(choice.method), order = to_string(choice.summation);
    const StrdScore certified = score_strd(results, method, order, true),
                    own = score_strd(results, method, order, false);
    if (certified.sets == 0) continue;
    table.rows.push_back({method, order, fmt::format("{:.1f}", certified.average),
                          fmt::format("{:.1f}", certified.least), fmt::format("{:.1f}", own.average),
                          fmt::format("{:.1f}", own.least)});
  }
  return table;
}

}  // namespace

std::string markdown_data(const std::vector<Result>& results) {
  std::string text = "## Certified and public data\n\n";
  text += section("NIST StRD, f64: correct digits of the sd",
                  "LRE against the exact statistic of the rounded data, lanes256. The ceiling is what that exact "
                  "statistic scores against the certified value: rounding the published decimals to the dtype sets it, "
                  "and only the exact statistic has to meet it (a method can beat it by luck).",
                  strd_table(results, Dtype::f64, Dtype::f64, "lanes256"));
  text += section("NIST StRD, f64: averages", "The nine sets; LRE capped at 15.", score_table(results));
  text +=
      section("NIST StRD, f32", "Where rounding made all numbers equal the variance is 0, which no method can undo.",
              strd_table(results, Dtype::f32, Dtype::f32, "lanes256"));
  text += section("NIST StRD, f16 with f32 sums", "", strd_table(results, Dtype::f16, Dtype::f32, "lanes256"));
  text += section("NIST StRD, bf16 with f32 sums", "", strd_table(results, Dtype::bf16, Dtype::f32, "lanes256"));
  Table logits;
  logits.columns = {"method", "sums in", "rows that overflow", "worst relative error of the others"};
  for (const Result* r : select(results, {"logits", "", "", "", "", {}, {}}))
    logits.rows.push_back(
        {r->method, to_string(r->arithmetic.type), r->note, r->rel_error ? fmt::format("{:.1e}", *r->rel_error) : ""});
  text += section("2,500 rows of public logits in f16", "A classifier's logits (LeNet on MNIST).", logits);
  Table cases;
  cases.columns = {"case", "op", "dtype", "kernels' forms right", "other forms right", "wrong"};
  for (const CaseSummary& c : summarise_cases(results)) {
    std::string wrong;
    for (std::size_t i = 0; i < c.wrong.size() && i < 6; ++i) wrong += (i > 0 ? ", " : "") + c.wrong[i];
    if (c.wrong.size() > 6) wrong += fmt::format(", and {} more", c.wrong.size() - 6);
    cases.rows.push_back({c.id, c.op, to_string(c.dtype), fmt::format("{} of {}", c.kernels_right, c.kernels),
                          fmt::format("{} of {}", c.others_right, c.others), wrong});
  }
  text += section("Public cases with known answers", "Inputs from public bug reports.", cases);
  return text;
}

}  // namespace rowtune::stability
