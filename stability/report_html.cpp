#include "stability/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "stability/embedded.hpp"
#include "stability/report_md.hpp"

namespace rowtune::stability {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

/// A number, null when absent, or the name of a non-finite value.
nlohmann::json number(const std::optional<double>& value) {
  if (!value) return nullptr;
  if (std::isnan(*value)) return "nan";
  if (std::isinf(*value)) return *value > 0 ? "inf" : "-inf";
  return *value;
}

/// What the figures draw, a row a result.
nlohmann::json figure_data(const std::vector<Result>& results) {
  static constexpr std::array<std::string_view, 8> drawn = {"condition",     "length",         "merit", "kernel_rows",
                                                            "softmax_range", "softmax_offset", "strd",  "magnitude"};
  nlohmann::json rows = nlohmann::json::array();
  for (const Result& r : results) {
    if (std::find(drawn.begin(), drawn.end(), r.experiment) == drawn.end()) continue;
    if (r.op == "logsumexp" || r.method == "none") continue;
    // Every precision is drawn for one order only; the other orders for f32 alone.
    const bool in_f32 = r.dtype == Dtype::f32 && r.arithmetic.type == Dtype::f32;
    if (!in_f32 && r.order.rfind("lanes", 0) != 0) continue;
    if (!in_f32 && r.experiment != "condition" && r.experiment != "strd" && r.experiment != "softmax_offset") continue;
    rows.push_back({r.experiment, r.test_case, r.op, r.method, r.order, to_string(r.dtype),
                    to_string(r.arithmetic.type), r.n, number(r.factor_value), number(r.kappa), number(r.rel_error),
                    number(r.bound), to_string(r.bound_kind), r.nan_count + r.inf_count, r.negative_count,
                    number(r.lre), number(r.lre_ceiling), number(r.lre_certified)});
  }
  return {{"columns",
           {"experiment", "case", "op", "method", "order", "dtype", "arithmetic", "n", "factor", "kappa", "error",
            "bound", "bound_kind", "nonfinite", "negative", "lre", "ceiling", "certified"}},
          {"rows", rows}};
}

struct Figure {
  const char *id, *title, *caption;
};
constexpr Figure figures[] = {
    {"merit", "The order of the sum decides, not the formula",
     "Relative error of the variance in f32, 2^20 normal numbers whose mean is 1e4 standard deviations, shuffled and "
     "sorted. Left is better; the broken line is an error of 1: nothing is right."},
    {"condition", "Error against condition number",
     "f32, 4096 numbers; kappa as the rounded data has it. Broken lines: proven bounds (none where n u >= 0.1 or "
     "something "
     "overflowed). Marks in the band at the top are NaN or infinite, marks on the bottom edge are exact; ringed marks "
     "are negative variances."},
    {"length", "Error against length",
     "f32, mean 100, sd 1. Only the depth of the sum matters: compare the three panels."},
    {"lanes", "The kernels' own rows and lanes",
     "f32, lanes from a warp (32) to a cluster of blocks (8192), mean 1e4 standard deviations; one line a row length."},
    {"precision", "Rounding the input, and summing in the low type",
     "Two-pass over 256 lanes, against the exact variance of the rounded data. With f32 sums f16 and bf16 data is as "
     "safe as f32 data; with low sums little is left."},
    {"offset", "Softmax against the offset of the logits",
     "f32, 1024 normal logits around the offset. Without the shift the row overflows upwards and vanishes downwards; "
     "the "
     "shifted forms do not notice."},
    {"logsoftmax", "log_softmax against the offset",
     "Error relative to max(1, |output|). Folding the maximum into the logarithm rounds at the size of the offset."},
    {"range", "Softmax against the range of the logits",
     "f32, 1024 logits spread over the range; outputs in the normal range. Broken lines: proven bounds."},
    {"strd", "Certified data: correct digits of the standard deviation",
     "NIST StRD, f64 and f32, 256 lanes, against the exact statistic of the rounded data. The bar is the ceiling that "
     "rounding the published decimals sets against the certified value."}};

std::string html_table(const Table& table) {
  std::string text = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& column : table.columns) text += "<th>" + escaped(column) + "</th>";
  text += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += "<td>" + escaped(cell) + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string details(const std::string& title, const Table& table) {
  return "<details><summary>" + escaped(title) + "</summary>" + html_table(table) + "</details>\n";
}

std::string tables(const std::vector<Result>& results) {
  const Dtype f32 = Dtype::f32;
  std::string text = "<section><h2>The numbers</h2>\n";
  text += details("Order of merit, f32, n = 2^20", error_table(results, "merit", "variance", f32, f32));
  text += details("Variance against condition number, f32", error_table(results, "condition", "variance", f32, f32));
  text += details("Variance against length, f32", error_table(results, "length", "variance", f32, f32));
  text += details("Where variance first fails, by mean / sd",
                  failure_table(first_failures(results, "condition", "variance", 1), "{:.2g}"));
  text += details("LayerNorm output, f32", error_table(results, "norm_output", "layernorm", f32, f32));
  text += details("Softmax against offset, f32", error_table(results, "softmax_offset", "softmax", f32, f32));
  text += details("Masked softmax, f32", error_table(results, "softmax_masked", "softmax", f32, f32));
  return text + "</section>\n";
}

}  // namespace

std::string html_report(const std::vector<Result>& results, const StudyFacts& facts) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Numerical stability of variance, norms and softmax</title>\n<style>\n";
  text += embedded("page/page.css");
  text += "</style>\n</head>\n<body>\n<main>\n<h1>Numerical stability of variance, norms and softmax</h1>\n";
  text += fmt::format(
      "<p class=\"run\">{} run, seed {}, references in {}. {} results; the whole list is stability.csv, the "
      "reading version stability.md.</p>\n<section><h2>In short</h2>\n<ul>\n",
      facts.options.quick ? "Quick" : "Default", facts.options.seed, escaped(facts.precision), results.size());
  for (const std::string& line : findings_in_words(results, facts)) text += "<li>" + escaped(line) + "</li>\n";
  text += "</ul>\n</section>\n";
  for (const Figure& f : figures)
    text += fmt::format("<figure id=\"{}\"><h2>{}</h2><div class=\"plot\"></div><figcaption>{}</figcaption></figure>\n",
                        f.id, escaped(f.title), escaped(f.caption));
  text += tables(results);
  text += "<noscript><p>The figures need JavaScript; the tables above do not.</p></noscript>\n</main>\n<script>\n";
  text += embedded("d3.min.js");
  text += "\n</script>\n<script type=\"application/json\" id=\"results\">\n";
  text += figure_data(results).dump(-1, ' ', true);
  text += "\n</script>\n<script>\n";
  text += embedded("page/page.js");
  text += "</script>\n</body>\n</html>\n";
  return text;
}

}  // namespace rowtune::stability
