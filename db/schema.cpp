#include "db/schema.hpp"

#include <fmt/format.h>

#include "db/transaction.hpp"

namespace rowtune::db {
namespace {

int user_version(SQLite::Database& db) { return db.execAndGet("PRAGMA user_version").getInt(); }

// Version 1. A sweep is everything of a measurement's identity but the config; measurements hang below it. Whether two
// rows may be compared is then a question about their sweeps.
constexpr const char* version_1 = R"sql(
CREATE TABLE device (
  id     INTEGER PRIMARY KEY,
  model  TEXT NOT NULL,
  limits TEXT NOT NULL,
  UNIQUE (model, limits)
) STRICT;

CREATE TABLE workload (
  id           INTEGER PRIMARY KEY,
  op           TEXT NOT NULL,
  dtype        TEXT NOT NULL,
  rows         INTEGER NOT NULL,
  cols         INTEGER NOT NULL,
  ld           INTEGER NOT NULL,
  off          INTEGER NOT NULL,
  regime       TEXT NOT NULL,
  options      TEXT NOT NULL,
  bytes        INTEGER NOT NULL,  -- each input once, each output once, weights once
  ceiling_rows INTEGER NOT NULL,  -- rows of the contiguous copy whose time is the ceiling
  UNIQUE (op, dtype, rows, cols, ld, off, regime, options)
) STRICT;

CREATE INDEX workload_by_ceiling ON workload (cols, ceiling_rows, dtype, regime);

CREATE TABLE sweep (
  id                 INTEGER PRIMARY KEY,
  device_id          INTEGER NOT NULL REFERENCES device,
  workload_id        INTEGER NOT NULL REFERENCES workload,
  toolchain          TEXT NOT NULL,
  source_fingerprint TEXT NOT NULL,
  protocol           INTEGER NOT NULL,
  last_used_at       TEXT NOT NULL,               -- of the last measurement or resumption: the newest sweep is current
  revision           INTEGER NOT NULL DEFAULT 0,  -- counts the changes to its measurements
  space_size         INTEGER,                     -- configs of the space, when known
  UNIQUE (device_id, workload_id, toolchain, source_fingerprint, protocol)
) STRICT;

CREATE TABLE run (  -- provenance, shared by the measurements of one run on one device
  id              INTEGER PRIMARY KEY,
  device          TEXT NOT NULL,
  uuid            TEXT NOT NULL,
  driver          TEXT NOT NULL,
  host            TEXT NOT NULL,
  rowtune_version TEXT NOT NULL,
  started_at      TEXT NOT NULL,
  UNIQUE (started_at, host, device, uuid, driver, rowtune_version)
) STRICT;

CREATE TABLE measurement (
  id                  INTEGER PRIMARY KEY,
  sweep_id            INTEGER NOT NULL REFERENCES sweep,
  config              TEXT NOT NULL,
  run_id              INTEGER NOT NULL REFERENCES run,
  measured_at         TEXT NOT NULL,
  outcome             TEXT NOT NULL,
  eligible            INTEGER NOT NULL CHECK (eligible IN (0, 1)),
  is_base             INTEGER NOT NULL CHECK (is_base IN (0, 1)),
  time_us             REAL CHECK (time_us >= 0),
  time_lo_us          REAL,
  time_hi_us          REAL,
  max_error_ulp       REAL,
  algorithm           TEXT NOT NULL,
  block_size          INTEGER NOT NULL,
  rows_per_warp       INTEGER NOT NULL,
  vector_width        INTEGER NOT NULL,
  split_count         INTEGER NOT NULL,
  extra_axes          TEXT NOT NULL,
  sample_count        INTEGER NOT NULL,
  settled             INTEGER NOT NULL CHECK (settled IN (0, 1)),
  launches_per_sample INTEGER NOT NULL,
  bytes_in_rotation   INTEGER NOT NULL,
  registers           INTEGER NOT NULL,
  spill_bytes         INTEGER NOT NULL,
  shared_bytes        INTEGER NOT NULL,
  blocks_per_unit     INTEGER NOT NULL,
  binary_hash         TEXT NOT NULL,
  clocks              TEXT NOT NULL,
  message             TEXT NOT NULL,
  UNIQUE (sweep_id, config),
  CHECK ((outcome = 'ok') = (time_us IS NOT NULL))
) STRICT;
CREATE INDEX measurement_by_run ON measurement (run_id);
CREATE INDEX measurement_by_time ON measurement (sweep_id, time_us, config) WHERE eligible = 1 AND outcome = 'ok';
CREATE UNIQUE INDEX measurement_base ON measurement (sweep_id) WHERE is_base = 1;

CREATE TABLE sample (  -- apart from the measurement, so that reading medians does not page through samples
  measurement_id INTEGER PRIMARY KEY REFERENCES measurement ON DELETE CASCADE,
  samples_us     TEXT NOT NULL  -- JSON array, as measured, in order
) STRICT;

CREATE TABLE decision (
  sweep_id   INTEGER PRIMARY KEY REFERENCES sweep,
  revision   INTEGER NOT NULL,  -- of the sweep, when it was decided: a later measurement makes the decision stale
  config     TEXT NOT NULL,
  confidence REAL NOT NULL,
  margin     REAL NOT NULL,
  method     TEXT NOT NULL,
  decided_at TEXT NOT NULL
) STRICT;

CREATE TABLE decision_tie (
  sweep_id INTEGER NOT NULL REFERENCES decision ON DELETE CASCADE,
  config   TEXT NOT NULL,
  PRIMARY KEY (sweep_id, config)
) STRICT, WITHOUT ROWID;

CREATE TABLE accuracy_result (
  id                 INTEGER PRIMARY KEY,
  sweep_id           INTEGER NOT NULL REFERENCES sweep,
  config             TEXT NOT NULL,
  input              TEXT NOT NULL,
  elements           INTEGER NOT NULL,
  max_error_ulp      REAL,
  mean_error_ulp     REAL,
  max_rel_error      REAL,
  nan_count          INTEGER NOT NULL,
  inf_count          INTEGER NOT NULL,
  negative_count     INTEGER NOT NULL,
  false_zero_count   INTEGER NOT NULL,
  measured_at        TEXT NOT NULL,
  UNIQUE (sweep_id, config, input)
) STRICT;

CREATE TABLE baseline (
  id           INTEGER PRIMARY KEY,
  device_model TEXT NOT NULL,
  workload_id  INTEGER NOT NULL REFERENCES workload,
  impl         TEXT NOT NULL,
  version      TEXT NOT NULL,
  method       TEXT NOT NULL,
  time_us      REAL NOT NULL CHECK (time_us > 0),
  time_lo_us   REAL,
  time_hi_us   REAL,
  source       TEXT NOT NULL,
  imported_at  TEXT NOT NULL,
  UNIQUE (device_model, workload_id, impl, version, method)
) STRICT;

CREATE TABLE stability_run (
  id              INTEGER PRIMARY KEY,
  name            TEXT NOT NULL UNIQUE,
  started_at      TEXT NOT NULL,
  host            TEXT NOT NULL,
  rowtune_version TEXT NOT NULL,
  reference       TEXT NOT NULL,
  settings        TEXT NOT NULL
) STRICT;

CREATE TABLE stability_result (
  id               INTEGER PRIMARY KEY,
  run_id           INTEGER NOT NULL REFERENCES stability_run ON DELETE CASCADE,
  experiment       TEXT NOT NULL,
  "case"           TEXT NOT NULL,
  op               TEXT NOT NULL,
  method           TEXT NOT NULL,
  "order"          TEXT NOT NULL,
  dtype            TEXT NOT NULL,
  n                INTEGER NOT NULL,
  kappa            REAL,
  rel_error        REAL,
  ulp_error        REAL,
  lre              REAL,
  lre_ceiling      REAL,
  bound            REAL,
  bound_kind       TEXT NOT NULL,
  nan_count        INTEGER NOT NULL,
  inf_count        INTEGER NOT NULL,
  negative_count   INTEGER NOT NULL,
  false_zero_count INTEGER NOT NULL,
  device_model     TEXT NOT NULL,  -- empty: the method on the host
  config           TEXT NOT NULL,  -- empty: not a kernel
  note             TEXT NOT NULL
) STRICT;
CREATE INDEX stability_result_by_run ON stability_result (run_id, experiment);
)sql";

}  // namespace

const std::vector<Migration>& migrations() {
  static const std::vector<Migration> list{{1, [](SQLite::Database& db) { db.exec(version_1); }}};
  return list;
}

int newest_schema() { return migrations().back().version; }

void migrate(SQLite::Database& db, const std::vector<Migration>& list,
             const std::function<void(SQLite::Database&)>& refresh_views) {
  for (const auto& step : list) {
    if (user_version(db) >= step.version) continue;
    WriteTransaction transaction(db);
    if (user_version(db) >= step.version) continue;  // another process was quicker
    drop_views(db);                                  // a view on a table that changes would stop the change
    step.apply(db);
    db.exec(fmt::format("PRAGMA application_id = {}", application_id));
    db.exec(fmt::format("PRAGMA user_version = {}", step.version));
    if (&step == &list.back()) refresh_views(db);
    transaction.commit();
  }
}

void drop_views(SQLite::Database& db) {
  std::vector<std::string> names;
  SQLite::Statement query(db, "SELECT name FROM sqlite_schema WHERE type = 'view'");
  while (query.executeStep()) names.push_back(query.getColumn(0).getString());
  query.reset();
  for (const auto& name : names) {
    std::string quoted;
    for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    db.exec(fmt::format("DROP VIEW \"{}\"", quoted));
  }
}

}  // namespace rowtune::db
