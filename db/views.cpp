// The views. `leaderboard` ranks; the others select from it or from the tables. README.md documents them for people.

#include <fmt/format.h>

#include "db/schema.hpp"

namespace rowtune::db {
namespace {

// Only the sweep used last of each (device, workload) competes: a changed kernel, compiler or measuring protocol makes
// a new sweep, and numbers from before the change say nothing about it.
constexpr const char* current_sweep = R"sql(
CREATE VIEW current_sweep AS
SELECT id, device_id, workload_id, toolchain, source_fingerprint, protocol, last_used_at, revision, space_size
FROM (SELECT *, row_number() OVER (PARTITION BY device_id, workload_id ORDER BY last_used_at DESC, protocol DESC, id DESC) AS age
      FROM sweep WHERE revision > 0)
WHERE age = 1)sql";

// Ranks the configs of each current sweep. Windows carry few columns; the rest is joined by id afterwards.
//   selectable: ran right, allowed to win, and passes the filter
//   honoured:   a decision is there, made on exactly these measurements, for a selectable config not slower than base
//   is_tie:     in the decision's tie set, else: its interval overlaps that of the fastest
//   rank 1:     the decided config, else the base if it ties, else the fastest; unselectable configs have none
std::string ranking(std::string_view workload_filter, std::string_view config_filter) {
  return fmt::format(R"sql(
candidate AS (
  SELECT m.id, m.sweep_id, m.config, m.is_base, m.time_us, d.config AS decided,
         coalesce(m.time_lo_us, m.time_us) AS lo, coalesce(m.time_hi_us, m.time_us) AS hi,
         m.eligible AND m.outcome = 'ok' AND ({1}) AS selectable
  FROM current_sweep s
  JOIN workload w ON w.id = s.workload_id
  JOIN device v ON v.id = s.device_id
  JOIN measurement m ON m.sweep_id = s.id
  JOIN run r ON r.id = m.run_id
  LEFT JOIN decision d ON d.sweep_id = s.id AND d.revision = s.revision
  WHERE {0}
),
compared AS (
  SELECT *,
         max(CASE WHEN is_base THEN time_us END) OVER fastest_first AS base_time_us,
         max(CASE WHEN is_base THEN config END) OVER fastest_first AS base_config,
         first_value(CASE WHEN selectable THEN lo END) OVER fastest_first AS fastest_lo,
         first_value(CASE WHEN selectable THEN hi END) OVER fastest_first AS fastest_hi,
         max(CASE WHEN selectable AND config = decided THEN time_us END) OVER fastest_first AS decided_time_us
  FROM candidate
  WINDOW fastest_first AS (PARTITION BY sweep_id ORDER BY selectable DESC, time_us, config
                           ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
),
tied AS (
  SELECT *, decided_time_us IS NOT NULL AND decided_time_us <= coalesce(base_time_us, decided_time_us) AS honoured
  FROM compared
),
judged AS (
  SELECT *,
         CASE WHEN NOT selectable THEN 0
              WHEN honoured THEN config = decided OR EXISTS (SELECT 1 FROM decision_tie t
                                                             WHERE t.sweep_id = tied.sweep_id AND t.config = tied.config)
              ELSE lo <= fastest_hi AND hi >= fastest_lo END AS is_tie
  FROM tied
),
ranked AS (
  SELECT id, sweep_id, base_time_us, base_config, honoured, selectable, is_tie,
         sum(is_tie) OVER (PARTITION BY sweep_id) AS tie_count,
         row_number() OVER (PARTITION BY sweep_id
                            ORDER BY selectable DESC,
                                     CASE WHEN honoured THEN config = decided ELSE is_tie AND is_base END DESC,
                                     time_us, config) AS place
  FROM judged
))sql",
                     workload_filter, config_filter);
}

// The chosen copy of each contiguous shape: what a perfect kernel would need.
std::string ceiling_view() {
  return "CREATE VIEW ceiling AS WITH" +
         ranking("w.op = 'copy' AND w.ld = w.cols AND w.off = 0 AND w.options = '-'", "1") + R"sql(
SELECT s.device_id, w.dtype, w.regime, w.rows, w.cols, w.bytes, m.time_us, m.config
FROM ranked k JOIN measurement m ON m.id = k.id JOIN sweep s ON s.id = k.sweep_id JOIN workload w ON w.id = s.workload_id
WHERE k.place = 1 AND k.selectable)sql";
}

constexpr const char* failures = R"sql(
CREATE VIEW failures AS
SELECT r.device, w.op, w.dtype, w.rows, w.cols, w.regime, m.config, m.outcome AS status, m.message, m.is_base,
       m.eligible, w.ld, w.off, w.options, m.algorithm, m.max_error_ulp, m.measured_at, v.model AS device_model,
       v.limits AS device_limits
FROM current_sweep s
JOIN workload w ON w.id = s.workload_id
JOIN device v ON v.id = s.device_id
JOIN measurement m ON m.sweep_id = s.id
JOIN run r ON r.id = m.run_id
WHERE m.outcome <> 'ok')sql";

// `older_results` counts what the file holds of the same workload under another toolchain, source or protocol.
constexpr const char* coverage = R"sql(
CREATE VIEW coverage AS
SELECT max(r.device) AS device, w.op, w.dtype, w.rows, w.cols, w.regime,
       count(*) AS measured, s.space_size,
       CASE WHEN s.space_size > 0 THEN 1.0 * count(*) / s.space_size END AS fraction,
       sum(m.outcome = 'ok') AS ok, sum(m.outcome <> 'ok') AS failed, sum(NOT m.eligible) AS ineligible,
       sum(m.outcome = 'ok' AND NOT m.settled) AS unsettled,
       EXISTS (SELECT 1 FROM decision d WHERE d.sweep_id = s.id AND d.revision = s.revision) AS decided,
       max(c.time_us) IS NOT NULL AS has_ceiling,
       (SELECT count(*) FROM sweep o JOIN measurement n ON n.sweep_id = o.id
        WHERE o.device_id = s.device_id AND o.workload_id = s.workload_id AND o.id <> s.id) AS older_results,
       min(m.measured_at) AS first_measured_at, max(m.measured_at) AS last_measured_at,
       count(DISTINCT r.uuid) AS units,
       w.ld, w.off, w.options, s.toolchain, s.source_fingerprint, s.protocol, v.model AS device_model,
       v.limits AS device_limits
FROM current_sweep s
JOIN workload w ON w.id = s.workload_id
JOIN device v ON v.id = s.device_id
JOIN measurement m ON m.sweep_id = s.id
JOIN run r ON r.id = m.run_id
LEFT JOIN ceiling c ON c.device_id = s.device_id AND c.dtype = w.dtype AND c.regime = w.regime
                   AND c.rows = w.ceiling_rows AND c.cols = w.cols
GROUP BY s.id)sql";

// `latest`: from the newest run that did this experiment.
constexpr const char* stability = R"sql(
CREATE VIEW stability AS
SELECT t.experiment, t."case", t.op, t.method, t."order", t.dtype, t.n, t.kappa, t.rel_error, t.ulp_error, t.lre,
       t.lre_ceiling, t.bound, t.bound_kind, t.nan_count, t.inf_count, t.negative_count, t.false_zero_count,
       t.device_model, t.config, t.note, t.id, u.name AS run, u.started_at,
       t.run_id = (SELECT p.id FROM stability_run p
                   WHERE EXISTS (SELECT 1 FROM stability_result q WHERE q.run_id = p.id AND q.experiment = t.experiment)
                   ORDER BY p.started_at DESC, p.id DESC LIMIT 1) AS latest
FROM stability_result t JOIN stability_run u ON u.id = t.run_id)sql";

constexpr const char* baselines = R"sql(
CREATE VIEW baselines AS
SELECT b.device_model, w.op, w.dtype, w.rows, w.cols, w.regime, b.impl, b.version, b.time_us, b.time_lo_us,
       b.time_hi_us, w.bytes / nullif(b.time_us, 0) / 1e3 AS gbps, k.config AS rowtune_config,
       k.time_us AS rowtune_time_us, b.time_us / nullif(k.time_us, 0) AS speedup, b.method, b.source, b.imported_at,
       w.ld, w.off, w.options
FROM baseline b
JOIN workload w ON w.id = b.workload_id
LEFT JOIN best k ON k.device_model = b.device_model AND k.op = w.op AND k.dtype = w.dtype AND k.rows = w.rows
                AND k.cols = w.cols AND k.ld = w.ld AND k.off = w.off AND k.regime = w.regime AND k.options = w.options)sql";

constexpr const char* accuracy = R"sql(
CREATE VIEW accuracy AS
SELECT w.op, w.dtype, w.rows, w.cols, w.regime, a.config, a.input, a.elements, a.max_error_ulp, a.mean_error_ulp,
       a.max_rel_error, a.nan_count, a.inf_count, a.negative_count, a.false_zero_count, m.time_us,
       coalesce(m.eligible, 1) AS eligible, a.measured_at, w.ld, w.off, w.options, s.toolchain, s.source_fingerprint, s.protocol, v.model AS device_model,
       v.limits AS device_limits
FROM accuracy_result a
JOIN current_sweep s ON s.id = a.sweep_id
JOIN workload w ON w.id = s.workload_id
JOIN device v ON v.id = s.device_id
LEFT JOIN measurement m ON m.sweep_id = a.sweep_id AND m.config = a.config)sql";

}  // namespace

const std::string_view leaderboard_columns =
    "device, op, dtype, rows, cols, regime, config, block_size, rows_per_warp, vector_width, split_count, time_us, "
    "time_lo_us, time_hi_us, gbps, ceiling_fraction, base_config, base_time_us, ties, max_error_ulp, status, "
    "gain_over_base, ld, off, options, algorithm, device_model, device_limits, toolchain, source_fingerprint, "
    "protocol, "
    "rank, eligible, is_base, is_tie, decided, settled, sample_count, registers, spill_bytes, shared_bytes, "
    "blocks_per_unit, extra_axes, bytes, ceiling_time_us, message, measured_at";

std::string leaderboard_sql(std::string_view workload_filter, std::string_view config_filter) {
  return "WITH" + ranking(workload_filter, config_filter) + R"sql(
SELECT r.device, w.op, w.dtype, w.rows, w.cols, w.regime, m.config, m.block_size, m.rows_per_warp, m.vector_width,
       m.split_count, m.time_us, m.time_lo_us, m.time_hi_us, w.bytes / nullif(m.time_us, 0) / 1e3 AS gbps,
       c.time_us * (1.0 * w.bytes / nullif(c.bytes, 0)) / nullif(m.time_us, 0) AS ceiling_fraction,
       k.base_config, k.base_time_us, CASE WHEN k.is_tie THEN k.tie_count - 1 ELSE 0 END AS ties, m.max_error_ulp,
       m.outcome AS status, k.base_time_us / nullif(m.time_us, 0) AS gain_over_base, w.ld, w.off, w.options,
       m.algorithm, v.model AS device_model, v.limits AS device_limits, s.toolchain, s.source_fingerprint, s.protocol,
       CASE WHEN k.selectable THEN k.place END AS rank, m.eligible, m.is_base, k.is_tie, k.honoured AS decided,
       m.settled, m.sample_count, m.registers, m.spill_bytes, m.shared_bytes, m.blocks_per_unit, m.extra_axes, w.bytes,
       c.time_us * (1.0 * w.bytes / nullif(c.bytes, 0)) AS ceiling_time_us, m.message, m.measured_at
FROM ranked k
JOIN measurement m ON m.id = k.id
JOIN run r ON r.id = m.run_id
JOIN sweep s ON s.id = k.sweep_id
JOIN workload w ON w.id = s.workload_id
JOIN device v ON v.id = s.device_id
LEFT JOIN ceiling c ON c.device_id = s.device_id AND c.dtype = w.dtype AND c.regime = w.regime
                   AND c.rows = w.ceiling_rows AND c.cols = w.cols)sql";
}

void create_views(SQLite::Database& db) {
  db.exec(current_sweep);
  db.exec(ceiling_view());
  db.exec("CREATE VIEW leaderboard AS " + leaderboard_sql("1", "1"));
  db.exec(fmt::format("CREATE VIEW best AS SELECT {} FROM leaderboard WHERE rank = 1", leaderboard_columns));
  for (const char* view : {failures, coverage, stability, baselines, accuracy}) db.exec(view);
}

}  // namespace rowtune::db
