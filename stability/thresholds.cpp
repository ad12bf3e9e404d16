#include "stability/thresholds.hpp"

#include <fmt/format.h>

#include <cmath>

#include "stability/comparisons.hpp"
#include "stability/formats.hpp"

namespace rowtune::stability {
namespace {

bool is_broken(ThresholdKind kind, const ArithmeticChoice& arithmetic, std::int64_t n, double x) {
  std::vector<double> row(static_cast<std::size_t>(n), kind == ThresholdKind::dominant ? 0.0 : x);
  if (kind == ThresholdKind::equal_negative) std::fill(row.begin(), row.end(), -x);
  row.front() = kind == ThresholdKind::equal_negative ? -x : x;
  const MemoryRow source(row);
  const SoftmaxReference reference = reference_softmax(source);
  const SoftmaxRun run({SoftmaxMethod::unsafe, {Order::pairwise, 1}}, arithmetic, source);
  FloatFlags flags;
  std::vector<double> out(1);
  run.softmax(0, out, flags);
  const long double right = reference.softmax(row.front());
  return !std::isfinite(out[0]) ||
         (out[0] == 0 && right >= static_cast<long double>(format_of(arithmetic.type).smallest_normal));
}

}  // namespace

const char* to_string(ThresholdKind kind) {
  switch (kind) {
    case ThresholdKind::dominant:
      return "one_dominant";
    case ThresholdKind::equal:
      return "equal";
    case ThresholdKind::equal_negative:
      break;
  }
  return "equal_negative";
}

Threshold find_threshold(ThresholdKind kind, Dtype type, bool flush, std::int64_t n) {
  const ArithmeticChoice arithmetic{type, false, false, flush ? Exponential::fast : Exponential::accurate};
  const Format& f = format_of(type);
  // Between 0, which is fine, and 2000, where exp leaves every format, the row is fine up to a point and broken after.
  std::int64_t fine = 0, broken = ordinal_of(type, 2000);
  while (broken - fine > 1) {
    const std::int64_t middle = fine + (broken - fine) / 2;
    (is_broken(kind, arithmetic, n, from_ordinal(type, middle)) ? broken : fine) = middle;
  }
  double predicted = std::log(f.largest);
  if (kind == ThresholdKind::equal) predicted -= std::log(static_cast<double>(n));
  if (kind == ThresholdKind::equal_negative)
    predicted = flush ? -std::log(f.smallest_normal) : -std::log(f.smallest_nonzero) + std::log(2.0);
  return {kind, type, flush, n, from_ordinal(type, broken), predicted};
}

std::vector<Cell> threshold_cells(const StudyOptions&) {
  std::vector<Cell> cells;
  struct Search {
    Dtype type;
    bool flush;
  };
  for (const Search& s : {Search{Dtype::f64, false}, Search{Dtype::f32, false}, Search{Dtype::f32, true},
                          Search{Dtype::bf16, false}, Search{Dtype::f16, false}})
    for (const ThresholdKind kind : {ThresholdKind::dominant, ThresholdKind::equal, ThresholdKind::equal_negative})
      for (const std::int64_t n : {std::int64_t{16}, std::int64_t{1024}}) {
        if (kind == ThresholdKind::dominant && n != 16) continue;
        cells.push_back({"threshold", fmt::format("{} {} n {}", to_string(kind), to_string(s.type), n), [=] {
                           const Threshold t = find_threshold(kind, s.type, s.flush, n);
                           Result r;
                           r.experiment = "threshold";
                           r.test_case = fmt::format("{}_n_{}", to_string(kind), n);
                           r.op = "softmax";
                           r.method = "unsafe";
                           r.order = "pairwise";
                           r.dtype = s.type;
                           r.arithmetic = {s.type, false, false, s.flush ? Exponential::fast : Exponential::accurate};
                           r.n = n;
                           r.factor = "first_broken_logit";
                           r.factor_value = kind == ThresholdKind::equal_negative ? -t.found : t.found;
                           r.value = r.factor_value;
                           r.reference = kind == ThresholdKind::equal_negative ? -t.predicted : t.predicted;
                           r.note = "found by search; the reference column is what the format's range alone predicts";
                           return std::vector<Result>{r};
                         }});
      }
  return cells;
}

}  // namespace rowtune::stability
