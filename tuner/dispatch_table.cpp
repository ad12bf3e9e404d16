// Building tables from winners, and looking shapes up.

#include "tuner/dispatch_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace rowtune {
namespace {

auto order_of(const DispatchTable& t) {
  return std::tuple(t.device_model, t.device_limits, t.op, t.dtype, t.regime, t.options);
}

auto place_of(const DispatchEntry& e) { return std::tuple(e.cols, e.rows, e.alignment); }

DispatchEntry entry_of(const db::BestRow& row) {
  DispatchEntry entry;
  entry.rows = row.rows, entry.cols = row.cols;
  entry.alignment = alignment_of({row.rows, row.cols, row.ld, row.off}, parse_dtype(row.dtype));
  entry.config = row.config;
  auto& e = entry.evidence;
  e.time_us = row.time_us.value();
  e.time_lo_us = row.time_lo_us, e.time_hi_us = row.time_hi_us;
  e.ceiling_fraction = row.ceiling_fraction;
  e.base_config = row.base_config, e.base_time_us = row.base_time_us, e.gain_over_base = row.gain_over_base;
  e.ties = row.ties, e.max_error_ulp = row.max_error_ulp, e.decided = row.decided;
  e.toolchain = row.toolchain, e.source_fingerprint = row.source_fingerprint, e.protocol = row.protocol;
  if (row.base_time_us && *row.base_time_us < e.time_us) {
    entry.config = row.base_config;
    if (e.ceiling_fraction) *e.ceiling_fraction *= e.time_us / *row.base_time_us;
    e.time_us = *row.base_time_us;
    e.time_lo_us = e.time_hi_us = e.max_error_ulp = std::nullopt;
    e.gain_over_base = 1;
    e.ties = 0;
    e.decided = false;
  }
  return entry;
}

/// Distance of two extents as |log2(a / b)|; no distance spans to or from nothing.
double distance(std::int64_t a, std::int64_t b) {
  if (a == b) return 0;
  if (a == 0 || b == 0) return std::numeric_limits<double>::infinity();
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

bool in_range(const DispatchTable& table, const Shape& shape) {
  double nearest_cols = std::numeric_limits<double>::infinity();
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (const auto& e : table.entries) {
    nearest_cols = std::min(nearest_cols, distance(e.cols, shape.cols));
    if (e.rows == 0) continue;
    fewest = std::min(fewest, e.rows);
    most = std::max(most, e.rows);
  }
  // 2 * rows >= fewest: rows are at most 2^31, so nothing overflows.
  return nearest_cols <= 1 && shape.rows > 0 && 2 * shape.rows >= fewest && shape.rows <= 2 * most;
}

const DispatchEntry& nearest_entry(const DispatchTable& table, const Shape& shape, int alignment) {
  const auto better = [&](const DispatchEntry& a, const DispatchEntry& b) {
    const auto rank = [&](const DispatchEntry& e) {
      return std::tuple(e.alignment != alignment, distance(e.cols, shape.cols), e.cols, distance(e.rows, shape.rows),
                        e.rows, -e.alignment);
    };
    return rank(a) < rank(b);
  };
  // The class goes first only as long as it has something in range.
  DispatchTable same_class;
  for (const auto& e : table.entries)
    if (e.alignment == alignment) same_class.entries.push_back(e);
  if (same_class.entries.empty() || !in_range(same_class, shape)) alignment = 0;
  return *std::min_element(table.entries.begin(), table.entries.end(), better);
}

}  // namespace

std::string to_string(MatchKind kind) {
  switch (kind) {
    case MatchKind::exact:
      return "exact";
    case MatchKind::near:
      return "near";
    case MatchKind::out_of_range:
      return "out_of_range";
    case MatchKind::wrong_device:
      return "wrong_device";
    case MatchKind::not_tuned:
      return "not_tuned";
  }
  return "not_tuned";
}

int alignment_of(const Shape& shape, Dtype dtype) {
  const std::int64_t offset = shape.off * size_of(dtype);
  const std::int64_t stride = shape.rows > 1 ? shape.ld * size_of(dtype) : 0;
  for (const int bytes : {16, 8, 4, 2})
    if (offset % bytes == 0 && stride % bytes == 0) return bytes;
  return size_of(dtype);
}

DispatchTables dispatch_tables(const std::vector<db::BestRow>& rows) {
  struct Candidate {
    DispatchEntry entry;
    std::tuple<std::int64_t, std::int64_t> from_contiguous;
  };
  std::map<decltype(order_of({})), std::pair<DispatchTable, std::map<decltype(place_of({})), Candidate>>> tables;
  for (const auto& row : rows) {
    if (row.op == to_string(Operation::copy) || !row.time_us) continue;
    DispatchTable table;
    const auto workload = row.workload();
    table.device_model = row.device_model, table.device_limits = row.device_limits;
    table.op = workload.op, table.dtype = workload.dtype, table.regime = workload.regime;
    table.options = workload.options;
    auto& [head, entries] =
        tables.try_emplace(order_of(table), table, decltype(tables)::mapped_type::second_type{}).first->second;
    const Candidate candidate{entry_of(row), {row.ld - row.cols, row.off}};
    const auto [at, added] = entries.try_emplace(place_of(candidate.entry), candidate);
    if (!added && candidate.from_contiguous < at->second.from_contiguous) at->second = candidate;
  }
  DispatchTables all;
  for (auto& [key, value] : tables) {
    for (auto& [place, candidate] : value.second) value.first.entries.push_back(candidate.entry);
    all.tables.push_back(std::move(value.first));
  }
  return all;
}

DispatchTables dispatch_tables(const db::Database& database, Regime regime, const db::BestQuery& only) {
  auto query = only;
  query.regime = regime;
  query.top = 1;
  return dispatch_tables(database.best(query));
}

Match lookup(const DispatchTables& tables, const std::string& device_model, Operation op, Dtype dtype,
             const Shape& shape, Regime regime, const std::optional<Options>& options,
             const std::optional<std::string>& device_limits) {
  const auto is_device = [&](const DispatchTable& t) {
    return t.device_model == device_model && (!device_limits || t.device_limits == *device_limits);
  };
  const Workload asked{op, dtype, shape, regime, options.value_or(default_options(op))};
  Match match;
  if (std::none_of(tables.tables.begin(), tables.tables.end(), is_device)) {
    std::set<std::string> models;
    for (const auto& t : tables.tables) models.insert(t.device_model);
    match.kind = MatchKind::wrong_device;
    match.sentence =
        fmt::format("refused: nothing here is for '{}'; the tables are for {}. Tune on this device.", device_model,
                    models.empty() ? "no device" : fmt::format("{}", fmt::join(models, ", ")));
    return match;
  }
  const auto table = std::find_if(tables.tables.begin(), tables.tables.end(), [&](const DispatchTable& t) {
    return is_device(t) && t.op == op && t.dtype == dtype && t.regime == regime && t.options == asked.options;
  });
  match.config = "base";
  if (table == tables.tables.end() || table->entries.empty()) {
    match.sentence = fmt::format("not tuned: no table for {}; launch the base.", to_string(asked));
    return match;
  }
  const int alignment = alignment_of(shape, dtype);
  const auto same = std::find_if(table->entries.begin(), table->entries.end(), [&](const DispatchEntry& e) {
    return e.rows == shape.rows && e.cols == shape.cols && e.alignment == alignment;
  });
  if (same != table->entries.end()) {
    match.kind = MatchKind::exact;
    match.config = same->config;
    match.entry = *same;
    match.sentence = fmt::format("exact: {} was tuned.", to_string(asked));
    return match;
  }
  if (!in_range(*table, shape)) {
    match.kind = MatchKind::out_of_range;
    match.sentence = fmt::format(
        "out of range: {} is more than a factor of two away from what was tuned; launch the base.", to_string(asked));
    return match;
  }
  const auto& entry = nearest_entry(*table, shape, alignment);
  match.kind = MatchKind::near;
  match.config = entry.config;
  match.entry = entry;
  match.cols_factor = std::exp2(distance(entry.cols, shape.cols));
  match.rows_factor = std::exp2(distance(entry.rows, shape.rows));
  match.sentence = fmt::format("near, not exact: {}x{} at {}-byte alignment was tuned, the closest to {}.", entry.rows,
                               entry.cols, entry.alignment, to_string(asked));
  return match;
}

}  // namespace rowtune
