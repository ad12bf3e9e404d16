#include "stability/records.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>

namespace rowtune::stability {

db::StabilityRow as_row(const Result& r) {
  db::StabilityRow row;
  row.experiment = r.experiment;
  row.case_name = r.test_case;
  row.op = r.op;
  row.method = r.method;
  row.order = r.order;
  row.dtype = to_string(r.dtype);
  row.n = r.n;
  row.kappa = r.kappa;
  row.rel_error = r.rel_error;
  row.ulp_error = r.ulp_error;
  row.lre = r.lre;
  row.lre_ceiling = r.lre_ceiling;
  row.bound = r.bound;
  row.bound_kind = to_string(r.bound_kind);
  row.nan_count = r.nan_count;
  row.inf_count = r.inf_count;
  row.negative_count = r.negative_count;
  row.false_zero_count = r.false_zero_count;
  row.note = fmt::format("sums {}", to_string(r.arithmetic.type));
  if (r.arithmetic.fma) row.note += ", fma";
  if (r.arithmetic.reciprocal) row.note += ", reciprocal";
  if (r.arithmetic.exponential == Exponential::fast) row.note += ", fast exp";
  if (r.experiment == "threshold" && r.value && r.reference)
    row.note += fmt::format("; breaks at {:.8g}, range predicts {:.8g}", *r.value, *r.reference);
  else if (!r.note.empty())
    row.note += "; " + r.note;
  return row;
}

void record(db::Database& database, const std::vector<Result>& results, const StudyFacts& facts) {
  db::StabilityRun run;
  run.settings = fmt::format("{} seed={} lanes={}", facts.options.quick ? "quick" : "default", facts.options.seed,
                             facts.options.lanes);
  run.name = "study " + run.settings;
  run.started_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) == 0) run.host = host;
  run.rowtune_version = ROWTUNE_VERSION;
  run.reference = "Eigen, " + facts.precision;
  std::vector<db::StabilityRow> rows;
  for (const Result& r : results) rows.push_back(as_row(r));
  database.record_stability(run, rows);
}

}  // namespace rowtune::stability
