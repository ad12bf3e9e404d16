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

// Whether measurement `m`, selectable, is among the ties of its sweep's verdict `k`.
constexpr std::string_view is_tie = R"sql(
  CASE WHEN k.decided_id IS NOT NULL
       THEN m.id = k.decided_id OR EXISTS (SELECT 1 FROM decision_tie t
                                           WHERE t.sweep_id = m.sweep_id AND t.config = m.config)
       ELSE coalesce(m.time_lo_us, m.time_us) <= k.fastest_hi AND coalesce(m.time_hi_us, m.time_us) >= k.fastest_lo
  END)sql";

// What is decided about each current sweep, one row a sweep. `selectable` configs ran right, may win and pass the
// filter.
//   fastest_id: the selectable config with the least median
//   decided_id: of a decision that is honoured: made on exactly these measurements, for a selectable config that is not
//               slower than the base
//   winner_id:  the decided config, else the base if its interval overlaps that of the fastest, else the fastest
// Look-ups by index, one a sweep, instead of windows over all measurements: 20 times faster.
std::string verdict(std::string_view workload_filter, std::string_view config_filter) {
  return fmt::format(R"sql(
contest AS MATERIALIZED (
  SELECT s.id AS sweep_id, s.device_id, s.workload_id,
         (SELECT m.id FROM measurement m WHERE m.sweep_id = s.id AND m.eligible = 1 AND m.outcome = 'ok' AND ({1})
          ORDER BY m.time_us, m.config LIMIT 1) AS fastest_id,
         (SELECT m.id FROM measurement m WHERE m.sweep_id = s.id AND m.is_base = 1) AS base_id,
         (SELECT m.id FROM measurement m WHERE m.sweep_id = s.id AND m.is_base = 1 AND m.eligible = 1
                                           AND m.outcome = 'ok' AND ({1})) AS selectable_base_id,
         (SELECT m.id FROM decision d JOIN measurement m ON m.sweep_id = d.sweep_id AND m.config = d.config
          WHERE d.sweep_id = s.id AND d.revision = s.revision AND m.eligible = 1 AND m.outcome = 'ok' AND ({1}))
           AS candidate_id
  FROM current_sweep s JOIN workload w ON w.id = s.workload_id JOIN device v ON v.id = s.device_id
  WHERE {0}
),
intervals AS (
  SELECT k.*, b.config AS base_config, b.time_us AS base_time_us,
         coalesce(f.time_lo_us, f.time_us) AS fastest_lo, coalesce(f.time_hi_us, f.time_us) AS fastest_hi,
         coalesce(b.time_lo_us, b.time_us) AS base_lo, coalesce(b.time_hi_us, b.time_us) AS base_hi,
         CASE WHEN c.time_us <= coalesce(b.time_us, c.time_us) THEN c.id END AS decided_id
  FROM contest k
  LEFT JOIN measurement f ON f.id = k.fastest_id
  LEFT JOIN measurement b ON b.id = k.base_id
  LEFT JOIN measurement c ON c.id = k.candidate_id
),
judged AS (
  SELECT *, CASE WHEN decided_id IS NOT NULL THEN decided_id
                 WHEN selectable_base_id IS NOT NULL AND base_lo <= fastest_hi AND base_hi >= fastest_lo
                 THEN selectable_base_id
                 ELSE fastest_id END AS winner_id
  FROM intervals
),
verdict AS MATERIALIZED (
  SELECT k.*, (SELECT count(*) FROM measurement m WHERE m.sweep_id = k.sweep_id AND m.eligible = 1
                                                    AND m.outcome = 'ok' AND ({1}) AND ({2})) AS tie_count
  FROM judged k
))sql",
                     workload_filter, config_filter, is_tie);
}

// The chosen copy of each contiguous shape, and for every current sweep the time that its bytes would take at the
// copy's bandwidth. CROSS JOIN keeps SQLite to this order: few copies, each with the few workloads of its bytes.
std::string ceiling_view() {
  return "CREATE VIEW ceiling AS WITH" +
         verdict("w.op = 'copy' AND w.ld = w.cols AND w.off = 0 AND w.options = '-'", "1") + R"sql(
SELECT s.id AS sweep_id, k.sweep_id AS copy_sweep_id, m.config AS copy_config, m.time_us AS copy_time_us,
       m.time_us * (1.0 * w.bytes / nullif(c.bytes, 0)) AS time_us
FROM verdict k
CROSS JOIN measurement m ON m.id = k.winner_id
CROSS JOIN workload c ON c.id = k.workload_id
CROSS JOIN workload w ON w.cols = c.cols AND w.ceiling_rows = c.rows AND w.dtype = c.dtype AND w.regime = c.regime
CROSS JOIN current_sweep s ON s.workload_id = w.id AND s.device_id = k.device_id)sql";
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
WITH ceilings AS MATERIALIZED (SELECT sweep_id, time_us FROM ceiling)
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
LEFT JOIN ceilings c ON c.sweep_id = s.id
GROUP BY s.id)sql";

// `latest`: from the newest run that did this experiment.
constexpr const char* stability = R"sql(
CREATE VIEW stability AS
WITH newest AS MATERIALIZED (
  SELECT experiment, run_id
  FROM (SELECT q.experiment, q.run_id,
               row_number() OVER (PARTITION BY q.experiment ORDER BY p.started_at DESC, p.id DESC) AS age
        FROM (SELECT DISTINCT run_id, experiment FROM stability_result) q JOIN stability_run p ON p.id = q.run_id)
  WHERE age = 1
)
SELECT t.experiment, t."case", t.op, t.method, t."order", t.dtype, t.n, t.kappa, t.rel_error, t.ulp_error, t.lre,
       t.lre_ceiling, t.bound, t.bound_kind, t.nan_count, t.inf_count, t.negative_count, t.false_zero_count,
       t.device_model, t.config, t.note, t.id, u.name AS run, u.started_at,
       e.run_id IS NOT NULL AS latest
FROM stability_result t
JOIN stability_run u ON u.id = t.run_id
LEFT JOIN newest e ON e.run_id = t.run_id AND e.experiment = t.experiment)sql";

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

// Of configs that ran right and may be chosen, with the time of the same config.
constexpr const char* energy = R"sql(
CREATE VIEW energy AS
SELECT w.op, w.dtype, w.rows, w.cols, w.regime, e.config, e.joules, m.time_us, 1e6 * e.joules / m.time_us AS watts,
       e.joules * m.time_us AS energy_delay, m.is_base, e.measured_at, w.ld, w.off, w.options,
       v.model AS device_model, v.limits AS device_limits
FROM energy_result e
JOIN current_sweep s ON s.id = e.sweep_id
JOIN workload w ON w.id = s.workload_id
JOIN device v ON v.id = s.device_id
JOIN measurement m ON m.sweep_id = e.sweep_id AND m.config = e.config
WHERE m.outcome = 'ok' AND m.eligible = 1)sql";

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

std::string leaderboard_sql(Ranks ranks, std::string_view workload_filter, std::string_view config_filter) {
  const bool all = ranks == Ranks::all;
  // The winner is known from the verdict; only the order of the others takes a sort.
  const std::string_view place =
      all ? "row_number() OVER (PARTITION BY sweep_id ORDER BY selectable DESC, id = winner_id DESC, time_us, config)"
          : "1";
  return "WITH" + verdict(workload_filter, config_filter) +
         fmt::format(R"sql(,
ceilings AS MATERIALIZED (SELECT sweep_id, time_us FROM ceiling),
candidate AS (
  SELECT m.id, m.sweep_id, m.time_us, m.config, k.base_config, k.base_time_us, k.decided_id, k.winner_id, k.tie_count,
         m.eligible AND m.outcome = 'ok' AND ({1}) AS selectable,
         m.eligible AND m.outcome = 'ok' AND ({1}) AND ({0}) AS is_tie
  FROM verdict k JOIN measurement m ON {2}
),
placed AS (
  SELECT *, {3} AS place FROM candidate
)
SELECT r.device, w.op, w.dtype, w.rows, w.cols, w.regime, m.config, m.block_size, m.rows_per_warp, m.vector_width,
       m.split_count, m.time_us, m.time_lo_us, m.time_hi_us, w.bytes / nullif(m.time_us, 0) / 1e3 AS gbps,
       c.time_us / nullif(m.time_us, 0) AS ceiling_fraction, p.base_config, p.base_time_us,
       CASE WHEN p.is_tie THEN p.tie_count - 1 ELSE 0 END AS ties, m.max_error_ulp, m.outcome AS status,
       p.base_time_us / nullif(m.time_us, 0) AS gain_over_base, w.ld, w.off, w.options, m.algorithm,
       v.model AS device_model, v.limits AS device_limits, s.toolchain, s.source_fingerprint, s.protocol,
       CASE WHEN p.selectable THEN p.place END AS rank, m.eligible, m.is_base, p.is_tie,
       p.decided_id IS NOT NULL AS decided, m.settled, m.sample_count, m.registers, m.spill_bytes, m.shared_bytes,
       m.blocks_per_unit, m.extra_axes, w.bytes, c.time_us AS ceiling_time_us, m.message, m.measured_at
FROM placed p
JOIN measurement m ON m.id = p.id
JOIN run r ON r.id = m.run_id
JOIN sweep s ON s.id = p.sweep_id
JOIN workload w ON w.id = s.workload_id
JOIN device v ON v.id = s.device_id
LEFT JOIN ceilings c ON c.sweep_id = p.sweep_id)sql",
                     is_tie, config_filter, all ? "m.sweep_id = k.sweep_id" : "m.id = k.winner_id", place);
}

void create_views(SQLite::Database& db) {
  db.exec(current_sweep);
  db.exec(ceiling_view());
  db.exec("CREATE VIEW leaderboard AS " + leaderboard_sql(Ranks::all, "1", "1"));
  db.exec("CREATE VIEW best AS " + leaderboard_sql(Ranks::winner, "1", "1"));
  for (const char* view : {failures, coverage, stability, baselines, accuracy, energy}) db.exec(view);
}

}  // namespace rowtune::db
