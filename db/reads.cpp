// Reading measurements and the views.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "db/impl.hpp"
#include "db/schema.hpp"

namespace rowtune::db {
namespace {

std::vector<double> from_json(const std::string& text) {
  std::vector<double> values;
  for (const auto& value : nlohmann::json::parse(text, nullptr, false))
    if (value.is_number()) values.push_back(value.get<double>());
  return values;
}

BestRow read_best(SQLite::Statement& statement) {
  RowReader r(statement);
  BestRow b;
  b.device = r.text(), b.op = r.text(), b.dtype = r.text();
  b.rows = r.integer(), b.cols = r.integer();
  b.regime = r.text(), b.config = r.text();
  b.block_size = r.small(), b.rows_per_warp = r.small(), b.vector_width = r.small(), b.split_count = r.small();
  b.time_us = r.real(), b.time_lo_us = r.real(), b.time_hi_us = r.real(), b.gbps = r.real();
  b.ceiling_fraction = r.real();
  b.base_config = r.text(), b.base_time_us = r.real();
  b.ties = r.small();
  b.max_error_ulp = r.real();
  b.status = r.text();
  b.gain_over_base = r.real();
  b.ld = r.integer(), b.off = r.integer();
  b.options = r.text(), b.algorithm = r.text(), b.device_model = r.text(), b.device_limits = r.text();
  b.toolchain = r.text(), b.source_fingerprint = r.text();
  b.protocol = r.small(), b.rank = r.small();
  b.eligible = r.flag(), b.is_base = r.flag(), b.is_tie = r.flag(), b.decided = r.flag(), b.settled = r.flag();
  b.sample_count = r.small(), b.registers = r.small(), b.spill_bytes = r.small(), b.shared_bytes = r.small();
  b.blocks_per_unit = r.small();
  b.extra_axes = r.text();
  b.bytes = r.integer();
  b.ceiling_time_us = r.real();
  b.message = r.text(), b.measured_at = r.text();
  return b;
}

constexpr const char* order =
    " ORDER BY device_model, device_limits, op, dtype, cols, rows, ld, off, regime, options, rank IS NULL, rank, "
    "time_us IS NULL, time_us, config";

/// Without `max_error_ulp` and `uuid` the views answer; with them the ranking is made anew among what passes.
std::vector<BestRow> ranked_rows(SQLite::Database& db, const BestQuery& query, std::int64_t top) {
  const bool filtered = query.max_error_ulp || query.uuid;
  const auto selection = leaderboard_sql(top == 1 ? Ranks::winner : Ranks::all, workload_filter,
                                         "(:max_error IS NULL OR (m.max_error_ulp <= :max_error AND NOT EXISTS "
                                         "(SELECT 1 FROM accuracy_result a WHERE a.sweep_id = m.sweep_id AND "
                                         "a.config = m.config AND NOT coalesce(a.max_error_ulp <= :max_error, 0)))) "
                                         "AND (:uuid IS NULL OR m.run_id IN (SELECT id FROM run WHERE uuid = :uuid))");
  SQLite::Statement statement(
      db, fmt::format("SELECT {} FROM ({}) WHERE (:top < 0 OR rank <= :top) AND (NOT :filtered OR rank IS NOT NULL){}",
                      leaderboard_columns, selection, order));
  bind_query(statement, query);
  statement.bind(":top", top);
  statement.bind(":filtered", int(filtered));
  if (query.max_error_ulp) statement.bind(":max_error", *query.max_error_ulp);
  if (query.uuid) statement.bind(":uuid", *query.uuid);
  std::vector<BestRow> rows;
  while (statement.executeStep()) rows.push_back(read_best(statement));
  return rows;
}

}  // namespace

const char* const workload_filter =
    "(:model IS NULL OR v.model = :model) AND (:limits IS NULL OR v.limits = :limits) AND (:op IS NULL OR w.op = :op) "
    "AND (:dtype IS NULL OR w.dtype = :dtype) AND (:regime IS NULL OR w.regime = :regime) "
    "AND (:options IS NULL OR w.options = :options) "
    "AND (:rows IS NULL OR (w.rows = :rows AND w.cols = :cols AND w.ld = :ld AND w.off = :off))";

void bind_query(SQLite::Statement& statement, const BestQuery& query) {
  if (query.device_model) statement.bind(":model", *query.device_model);
  if (query.device_limits) statement.bind(":limits", *query.device_limits);
  if (query.op) statement.bind(":op", to_string(*query.op));
  if (query.dtype) statement.bind(":dtype", to_string(*query.dtype));
  if (query.regime) statement.bind(":regime", to_string(*query.regime));
  if (query.options) statement.bind(":options", to_string(*query.options));
  if (query.shape) {
    statement.bind(":rows", query.shape->rows);
    statement.bind(":cols", query.shape->cols);
    statement.bind(":ld", query.shape->ld);
    statement.bind(":off", query.shape->off);
  }
}

Workload BestRow::workload() const {
  try {
    Workload w;
    w.op = parse_operation(op);
    w.dtype = parse_dtype(dtype);
    w.shape = parse_shape(fmt::format("{}x{}:ld={}:off={}", rows, cols, ld, off));
    w.regime = parse_regime(regime);
    w.options = parse_options(options);
    return w;
  } catch (const UsageError& error) {
    throw EnvironmentError(
        fmt::format("the database holds an {}: it is damaged, or was written by a newer rowtune", error.what()));
  }
}

std::vector<std::string> Database::recorded_configs(const MeasurementKey& key,
                                                    const std::optional<std::string>& uuid) const {
  return guarded(impl_->path, "reading", [&] {
    SQLite::Statement query(impl_->db, R"sql(
      SELECT m.config FROM measurement m JOIN run r ON r.id = m.run_id
      WHERE m.sweep_id = :sweep AND (:uuid IS NULL OR r.uuid = :uuid) ORDER BY m.config)sql");
    query.bind(":sweep", impl_->find_sweep(key));
    if (uuid) query.bind(":uuid", *uuid);
    std::vector<std::string> configs;
    while (query.executeStep()) configs.push_back(query.getColumn(0).getString());
    return configs;
  });
}

std::vector<Measurement> Database::measurements(const MeasurementKey& key) const {
  return guarded(impl_->path, "reading", [&] {
    SQLite::Statement query(impl_->db, R"sql(
      SELECT m.config, r.device, r.uuid, r.driver, r.host, r.rowtune_version, r.started_at, m.measured_at, m.outcome,
             m.message, m.eligible, m.is_base, m.time_us, m.time_lo_us, m.time_hi_us, m.max_error_ulp, m.algorithm,
             m.block_size, m.rows_per_warp, m.vector_width, m.split_count, m.extra_axes, m.sample_count, m.settled,
             m.launches_per_sample, m.bytes_in_rotation, m.registers, m.spill_bytes, m.shared_bytes, m.blocks_per_unit,
             m.binary_hash, m.clocks, coalesce(x.samples_us, '[]')
      FROM measurement m JOIN run r ON r.id = m.run_id LEFT JOIN sample x ON x.measurement_id = m.id
      WHERE m.sweep_id = ? ORDER BY m.id)sql");
    query.bind(1, impl_->find_sweep(key));
    std::vector<Measurement> all;
    while (query.executeStep()) {
      RowReader r(query);
      Measurement m;
      m.key = key;
      m.key.config = r.text();
      auto& p = m.provenance;
      p.device = r.text(), p.uuid = r.text(), p.driver = r.text(), p.host = r.text(), p.rowtune_version = r.text();
      p.started_at = r.text();
      m.measured_at = r.text();
      m.outcome = parse_outcome(r.text());
      m.message = r.text();
      m.eligible = r.flag(), m.is_base = r.flag();
      m.time_us = r.real(), m.time_lo_us = r.real(), m.time_hi_us = r.real(), m.max_error_ulp = r.real();
      m.algorithm = r.text();
      m.block_size = r.small(), m.rows_per_warp = r.small(), m.vector_width = r.small(), m.split_count = r.small();
      m.extra_axes = r.text();
      m.sample_count = r.small(), m.settled = r.flag();
      m.launches_per_sample = r.integer(), m.bytes_in_rotation = r.integer();
      m.facts.registers = r.small(), m.facts.spill_bytes = r.small(), m.facts.shared_bytes = r.small();
      m.facts.blocks_per_unit = r.small(), m.facts.binary_hash = r.text();
      m.clocks = r.text();
      m.samples_us = from_json(r.text());
      m.bytes = bytes_moved(key.workload);
      all.push_back(std::move(m));
    }
    return all;
  });
}

std::int64_t Database::measurement_count() const {
  return guarded(impl_->path, "reading",
                 [&] { return impl_->db.execAndGet("SELECT count(*) FROM measurement").getInt64(); });
}

std::vector<BestRow> Database::best(const BestQuery& query) const {
  return guarded(impl_->path, "reading the best configs", [&] { return ranked_rows(impl_->db, query, query.top); });
}

std::vector<BestRow> Database::leaderboard(const BestQuery& query) const {
  return guarded(impl_->path, "reading the leaderboard", [&] { return ranked_rows(impl_->db, query, -1); });
}

}  // namespace rowtune::db
