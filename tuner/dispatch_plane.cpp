#include "tuner/dispatch_plane.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace rowtune {
namespace {

constexpr double cols_ratio = 1.42, rows_ratio = 2;  ///< of the two ends of a piece, at most

/// How far the table reaches beyond the tuned shapes, as a factor.
constexpr std::int64_t reach = 8;

/// Each tuned extent alone, and what lies between them and beyond cut into pieces of at most `ratio`.
std::vector<std::int64_t> cut(const std::set<std::int64_t>& tuned, double ratio) {
  std::set<std::int64_t> ends(tuned);
  for (const auto extent : tuned)
    if (extent > 1) ends.insert(extent - 1);
  const auto between = [&](double low, double high) {
    const int pieces = std::max(1, static_cast<int>(std::ceil(std::log(high / low) / std::log(ratio) - 1e-9)));
    for (int i = 1; i <= pieces; ++i)
      ends.insert(static_cast<std::int64_t>(std::llround(low * std::pow(high / low, double(i) / pieces))));
  };
  for (auto at = tuned.begin(); std::next(at) != tuned.end(); ++at)
    between(static_cast<double>(*at), static_cast<double>(*std::next(at)));
  const auto first = static_cast<double>(*tuned.begin()), last = static_cast<double>(*tuned.rbegin());
  between(std::ceil(first / reach), first);
  between(last, reach * last);
  ends.insert(dispatch::grid_limit);
  const auto limit = std::min<std::int64_t>(reach * *tuned.rbegin(), dispatch::grid_limit);
  return {ends.begin(), ends.upper_bound(limit)};
}

}  // namespace

double middle(std::int64_t first, std::int64_t last) {
  return std::sqrt(static_cast<double>(std::max<std::int64_t>(first, 1)) * static_cast<double>(last));
}

Plane plane_of(const MeasuredTable& measured) {
  std::set<std::int64_t> cols, rows;
  for (const auto& w : measured.workloads) {
    if (!w.swept || w.shape.cols == 0 || w.shape.rows == 0) continue;
    cols.insert(w.shape.cols), rows.insert(w.shape.rows);
  }
  if (cols.empty()) return {};
  return {(*cols.begin() + reach - 1) / reach, (*rows.begin() + reach - 1) / reach, cut(cols, cols_ratio),
          cut(rows, rows_ratio)};
}

}  // namespace rowtune
