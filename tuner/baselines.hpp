#pragma once
// Other libraries' times: read from a file, and set beside rowtune's own.

#include <optional>
#include <string>
#include <vector>

#include "db/database.hpp"
#include "reports/printers.hpp"

namespace rowtune {

/// One JSON object a line: {"device_model", "op", "dtype", "shape", "regime", "impl", "version", "time_us"} and, where
/// known, "time_lo_us", "time_hi_us" (95 % interval of the median), "method" and "options". tuner/baselines/measure.py
/// writes it. Empty lines and lines that start with # are skipped. Throws EnvironmentError for an unreadable file and
/// UsageError naming the line and what is wrong with it.
std::vector<db::Baseline> read_baselines(const std::string& path);

/// rowtune's winner of a workload beside the fastest of the others.
struct Standing {
  db::BaselineRow best_other;
  double ratio = 0;  ///< time of the fastest other over rowtune's: above 1 rowtune is faster
};

/// Of every workload that both rowtune and others were measured on; copies and comparisons of copies left out.
std::vector<Standing> standings(const std::vector<db::BaselineRow>& rows);
reports::Sheet standings_sheet(const std::vector<Standing>& standings);
/// `32 workloads: not slower than the fastest other on 97 % of them, 1.59 times as fast on geometric average, ...`
std::string standings_words(const std::vector<Standing>& standings);

}  // namespace rowtune
