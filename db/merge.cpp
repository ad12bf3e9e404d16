// Joining another rowtune file into this one. Ids differ between files; rows meet by their unique keys.

#include <fmt/format.h>

#include <filesystem>

#include "db/impl.hpp"
#include "db/open.hpp"

namespace rowtune::db {
namespace {

/// The other file stays attached as `other` for as long as this lives.
class Attached {
 public:
  Attached(SQLite::Database& db, const std::string& uri) : db_(db) {
    SQLite::Statement attach(db_, "ATTACH ? AS other");
    attach.bind(1, uri);
    attach.exec();
  }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;
  ~Attached() {
    db_.tryExec("DROP TABLE IF EXISTS temp.sweep_map");
    db_.tryExec("DETACH other");
  }

 private:
  SQLite::Database& db_;
};

namespace sql {

constexpr const char* devices = R"sql(
INSERT INTO device (model, limits) SELECT model, limits FROM other.device WHERE true ON CONFLICT DO NOTHING)sql";

constexpr const char* workloads = R"sql(
INSERT INTO workload (op, dtype, rows, cols, ld, off, regime, options, bytes, ceiling_rows)
SELECT op, dtype, rows, cols, ld, off, regime, options, bytes, ceiling_rows FROM other.workload WHERE true
ON CONFLICT DO NOTHING)sql";

constexpr const char* runs = R"sql(
INSERT INTO run (device, uuid, driver, host, rowtune_version, started_at)
SELECT device, uuid, driver, host, rowtune_version, started_at FROM other.run WHERE true ON CONFLICT DO NOTHING)sql";

constexpr const char* sweeps = R"sql(
INSERT INTO sweep (device_id, workload_id, toolchain, source_fingerprint, protocol, last_used_at, space_size)
SELECT v.id, w.id, o.toolchain, o.source_fingerprint, o.protocol, o.last_used_at, o.space_size
FROM other.sweep o
JOIN other.device ov ON ov.id = o.device_id JOIN device v ON v.model = ov.model AND v.limits = ov.limits
JOIN other.workload ow ON ow.id = o.workload_id
JOIN workload w ON w.op = ow.op AND w.dtype = ow.dtype AND w.rows = ow.rows AND w.cols = ow.cols AND w.ld = ow.ld
               AND w.off = ow.off AND w.regime = ow.regime AND w.options = ow.options
WHERE true
ON CONFLICT (device_id, workload_id, toolchain, source_fingerprint, protocol) DO UPDATE
SET last_used_at = max(last_used_at, excluded.last_used_at), space_size = coalesce(space_size, excluded.space_size))sql";

constexpr const char* sweep_map = R"sql(
CREATE TEMP TABLE sweep_map AS
SELECT o.id AS theirs, s.id AS ours
FROM other.sweep o
JOIN other.device ov ON ov.id = o.device_id JOIN main.device v ON v.model = ov.model AND v.limits = ov.limits
JOIN other.workload ow ON ow.id = o.workload_id
JOIN main.workload w ON w.op = ow.op AND w.dtype = ow.dtype AND w.rows = ow.rows AND w.cols = ow.cols AND w.ld = ow.ld
                    AND w.off = ow.off AND w.regime = ow.regime AND w.options = ow.options
JOIN main.sweep s ON s.device_id = v.id AND s.workload_id = w.id AND s.toolchain = o.toolchain
                 AND s.source_fingerprint = o.source_fingerprint AND s.protocol = o.protocol)sql";

constexpr const char* measurements = R"sql(
INSERT INTO measurement (sweep_id, config, run_id, is_base, {0})
SELECT k.ours, o.config, r.id,
       o.is_base AND NOT EXISTS (SELECT 1 FROM measurement b WHERE b.sweep_id = k.ours AND b.is_base = 1), {1}
FROM other.measurement o
JOIN sweep_map k ON k.theirs = o.sweep_id
JOIN other.run t ON t.id = o.run_id
JOIN run r ON r.started_at = t.started_at AND r.host = t.host AND r.device = t.device AND r.uuid = t.uuid
          AND r.driver = t.driver AND r.rowtune_version = t.rowtune_version
WHERE NOT EXISTS (SELECT 1 FROM measurement m WHERE m.sweep_id = k.ours AND m.config = o.config)
ORDER BY o.id)sql";

constexpr const char* samples = R"sql(
INSERT INTO sample (measurement_id, samples_us)
SELECT m.id, x.samples_us
FROM other.sample x
JOIN other.measurement o ON o.id = x.measurement_id
JOIN sweep_map k ON k.theirs = o.sweep_id
JOIN measurement m ON m.sweep_id = k.ours AND m.config = o.config
WHERE m.id > ?)sql";

constexpr const char* revisions = R"sql(
UPDATE sweep SET revision = revision + 1 WHERE id IN (SELECT sweep_id FROM measurement WHERE id > ?))sql";

// A decision comes along only when it was made on exactly the measurements that this file has now.
constexpr const char* decided_there = R"sql(
FROM other.decision d
JOIN other.sweep o ON o.id = d.sweep_id AND o.revision = d.revision
JOIN sweep_map k ON k.theirs = o.id
JOIN main.sweep s ON s.id = k.ours
WHERE NOT EXISTS (SELECT 1 FROM main.decision e WHERE e.sweep_id = k.ours AND e.revision = s.revision)
  AND (SELECT count(*) FROM main.measurement m WHERE m.sweep_id = k.ours)
      = (SELECT count(*) FROM other.measurement m WHERE m.sweep_id = k.theirs)
  AND NOT EXISTS (SELECT 1 FROM other.measurement p
                  JOIN main.measurement m ON m.sweep_id = k.ours AND m.config = p.config
                  WHERE p.sweep_id = k.theirs AND (m.measured_at <> p.measured_at OR m.time_us IS NOT p.time_us)))sql";

constexpr const char* ties = R"sql(
INSERT INTO decision_tie (sweep_id, config)
SELECT k.ours, t.config
FROM other.decision_tie t JOIN sweep_map k ON k.theirs = t.sweep_id
JOIN main.decision d ON d.sweep_id = k.ours
JOIN other.decision o ON o.sweep_id = t.sweep_id AND o.decided_at = d.decided_at AND o.config = d.config
WHERE true
ON CONFLICT DO NOTHING)sql";

constexpr const char* accuracies = R"sql(
INSERT INTO accuracy_result (sweep_id, config, input, elements, max_error_ulp, mean_error_ulp, max_rel_error, nan_count,
  inf_count, negative_count, false_zero_count, measured_at)
SELECT k.ours, a.config, a.input, a.elements, a.max_error_ulp, a.mean_error_ulp, a.max_rel_error, a.nan_count,
       a.inf_count, a.negative_count, a.false_zero_count, a.measured_at
FROM other.accuracy_result a JOIN sweep_map k ON k.theirs = a.sweep_id
WHERE true ON CONFLICT DO NOTHING)sql";

constexpr const char* energies = R"sql(
INSERT INTO energy_result (sweep_id, config, joules, measured_at)
SELECT k.ours, e.config, e.joules, e.measured_at
FROM other.energy_result e JOIN sweep_map k ON k.theirs = e.sweep_id
WHERE true ON CONFLICT DO NOTHING)sql";

constexpr const char* baselines = R"sql(
INSERT INTO baseline (device_model, workload_id, impl, version, method, time_us, time_lo_us, time_hi_us, source,
  imported_at)
SELECT b.device_model, w.id, b.impl, b.version, b.method, b.time_us, b.time_lo_us, b.time_hi_us, b.source, b.imported_at
FROM other.baseline b
JOIN other.workload ow ON ow.id = b.workload_id
JOIN workload w ON w.op = ow.op AND w.dtype = ow.dtype AND w.rows = ow.rows AND w.cols = ow.cols AND w.ld = ow.ld
               AND w.off = ow.off AND w.regime = ow.regime AND w.options = ow.options
WHERE true ON CONFLICT DO NOTHING)sql";

constexpr const char* stability_runs = R"sql(
INSERT INTO stability_run (name, started_at, host, rowtune_version, reference, settings)
SELECT name, started_at, host, rowtune_version, reference, settings FROM other.stability_run WHERE true
ON CONFLICT DO NOTHING)sql";

constexpr const char* stability_columns =
    "experiment, \"case\", op, method, \"order\", dtype, n, kappa, rel_error, ulp_error, lre, lre_ceiling, bound, "
    "bound_kind, nan_count, inf_count, negative_count, false_zero_count, device_model, config, note";

constexpr const char* measurement_columns =
    "measured_at, outcome, eligible, time_us, time_lo_us, time_hi_us, max_error_ulp, algorithm, block_size, "
    "rows_per_warp, vector_width, split_count, extra_axes, sample_count, settled, launches_per_sample, "
    "bytes_in_rotation, registers, spill_bytes, shared_bytes, blocks_per_unit, binary_hash, clocks, message";

}  // namespace sql

std::string with_prefix(std::string columns, const std::string& prefix) {
  for (std::size_t at = 0; (at = columns.find(", ", at)) != std::string::npos; at += 2) columns.insert(at + 2, prefix);
  return prefix + columns;
}

}  // namespace

MergeCounts Database::merge_from(const std::string& other) {
  std::error_code none;
  if (std::filesystem::equivalent(other, impl_->path, none))
    throw UsageError(fmt::format("merge: '{}' is the file to merge into; name another one", other));
  Database::open(other, Mode::read_only);  // refuses what is not ours, not whole or not today's schema
  auto& db = impl_->db;
  const MergeCounts merged = guarded(impl_->path, "merging", [&] {
    Attached attached(db, reader_uri(other));
    return impl_->write("merging", [&] {
      const auto newest = [&](const char* table) {
        return db.execAndGet(fmt::format("SELECT coalesce(max(id), 0) FROM main.{}", table)).getInt64();
      };
      const auto execute_after = [&](const std::string& text, std::int64_t id) {
        SQLite::Statement statement(db, text);
        statement.bind(1, id);
        return std::int64_t(statement.exec());
      };
      MergeCounts counts;
      for (const char* step : {sql::devices, sql::workloads, sql::runs, sql::sweeps, sql::sweep_map}) db.exec(step);
      const auto last = newest("measurement");
      counts.measurements = db.exec(
          fmt::format(sql::measurements, sql::measurement_columns, with_prefix(sql::measurement_columns, "o.")));
      counts.measurements_present =
          db.execAndGet("SELECT count(*) FROM other.measurement").getInt64() - counts.measurements;
      execute_after(sql::samples, last);
      execute_after(sql::revisions, last);
      db.exec(
          "CREATE TEMP TABLE decided AS SELECT k.ours, s.revision, d.config, d.confidence, d.margin, d.method, "
          "d.decided_at " +
          std::string(sql::decided_there));
      db.exec("DELETE FROM main.decision WHERE sweep_id IN (SELECT ours FROM decided)");
      counts.decisions = db.exec("INSERT INTO decision SELECT * FROM decided");
      db.exec(sql::ties);
      db.exec("DROP TABLE temp.decided");
      counts.accuracies = db.exec(sql::accuracies);
      counts.energies = db.exec(sql::energies);
      counts.baselines = db.exec(sql::baselines);
      const auto last_run = newest("stability_run");
      counts.stability_runs = db.exec(sql::stability_runs);
      execute_after(fmt::format("INSERT INTO stability_result (run_id, {0}) SELECT u.id, {1} FROM "
                                "other.stability_result t JOIN other.stability_run o ON o.id = t.run_id "
                                "JOIN main.stability_run u ON u.name = o.name WHERE u.id > ? ORDER BY t.id",
                                sql::stability_columns, with_prefix(sql::stability_columns, "t.")),
                    last_run);
      return counts;
    });
  });
  Database::open(other, Mode::read_only);  // clears away what reading through its log left beside it
  return merged;
}

}  // namespace rowtune::db
