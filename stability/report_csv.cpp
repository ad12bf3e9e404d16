#include "stability/report_csv.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace rowtune::stability {

std::string csv_number(const std::optional<double>& value) {
  if (!value) return "";
  if (std::isnan(*value)) return "nan";
  return fmt::format("{}", *value);
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_header() {
  return "experiment,case,op,method,order,dtype,n,kappa,rel_error,ulp_error,lre,lre_ceiling,bound,bound_kind,nan_count,"
         "inf_count,negative_count,false_zero_count,arithmetic,fma,division,exponential,factor,factor_value,value,"
         "reference,mean_ulp_error,lre_certified,bound_ratio,bound_exceeded,note\n";
}

std::string csv_line(const Result& r) {
  std::string line = fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(r.experiment), csv_field(r.test_case), r.op,
      r.method, r.order, to_string(r.dtype), r.n, csv_number(r.kappa), csv_number(r.rel_error), csv_number(r.ulp_error),
      csv_number(r.lre), csv_number(r.lre_ceiling), csv_number(r.bound), to_string(r.bound_kind), r.nan_count,
      r.inf_count, r.negative_count, r.false_zero_count);
  std::optional<double> ratio;
  if (r.bound && r.rel_error) ratio = *r.rel_error / *r.bound;
  // Only a proven bound can be exceeded: the others are curves to look at.
  const char* exceeded = r.bound_kind != BoundKind::proven ? "" : r.bound_exceeded() ? "1" : "0";
  fmt::format_to(std::back_inserter(line), ",{},{},{},{},{},{},{},{},{},{},{},{},{}\n", to_string(r.arithmetic.type),
                 r.arithmetic.fma ? "on" : "off", r.arithmetic.reciprocal ? "reciprocal" : "division",
                 r.arithmetic.exponential == Exponential::fast ? "fast" : "accurate", r.factor,
                 csv_number(r.factor_value), csv_number(r.value), csv_number(r.reference), csv_number(r.mean_ulp_error),
                 csv_number(r.lre_certified), csv_number(ratio), exceeded, csv_field(r.note));
  return line;
}

std::string csv_of(const std::vector<Result>& results) {
  std::string text = csv_header();
  for (const Result& r : results) text += csv_line(r);
  return text;
}

}  // namespace rowtune::stability
