// Decisions, accuracy, baselines and stability results; failures and coverage.

#include <fmt/format.h>

#include "db/impl.hpp"

namespace rowtune::db {
namespace {

std::string or_now(const std::string& time) { return time.empty() ? now_utc() : time; }

/// The workload columns that start most views: op, dtype, rows, cols, regime; the rest comes later in the list.
Workload read_workload(RowReader& r) {
  Workload w;
  w.op = parse_operation(r.text());
  w.dtype = parse_dtype(r.text());
  w.shape.rows = r.integer(), w.shape.cols = r.integer();
  w.regime = parse_regime(r.text());
  w.shape.ld = r.integer(), w.shape.off = r.integer();
  w.options = parse_options(r.text());
  return w;
}

/// The filter of reads.cpp over a view, which has the columns of workload and device itself.
std::string select_from(const char* view, const char* columns) {
  return fmt::format(
      "SELECT {} FROM (SELECT *{} FROM {}) WHERE "
      "(:model IS NULL OR device_model = :model) AND (:limits IS NULL OR device_limits = :limits) "
      "AND (:op IS NULL OR op = :op) AND (:dtype IS NULL OR dtype = :dtype) AND (:regime IS NULL OR regime = :regime) "
      "AND (:options IS NULL OR options = :options) "
      "AND (:rows IS NULL OR (rows = :rows AND cols = :cols AND ld = :ld AND off = :off)) "
      "ORDER BY device_model, op, dtype, cols, rows, ld, off, regime, options",
      columns, std::string_view(view) == "baselines" ? ", '' AS device_limits" : "", view);
}

}  // namespace

void Database::record_decision(const Decision& decision) {
  check_key(decision.key, true);
  impl_->write("recording a decision", [&] {
    auto& db = impl_->db;
    const auto sweep = impl_->find_sweep(decision.key);
    SQLite::Statement exists(db, "SELECT 1 FROM measurement WHERE sweep_id = ? AND config = ?");
    SQLite::bind(exists, sweep, decision.key.config);
    if (!exists.executeStep())
      throw NotFoundError(fmt::format("decision for {}: config '{}' was not measured", to_string(decision.key.workload),
                                      decision.key.config));
    SQLite::Statement remove(db, "DELETE FROM decision WHERE sweep_id = ?");
    remove.bind(1, sweep);
    remove.exec();
    SQLite::Statement insert(db, R"sql(
      INSERT INTO decision (sweep_id, revision, config, confidence, margin, method, decided_at)
      SELECT id, revision, ?, ?, ?, ?, ? FROM sweep WHERE id = ?)sql");
    SQLite::bind(insert, decision.key.config, decision.confidence, decision.margin, decision.method,
                 or_now(decision.decided_at), sweep);
    insert.exec();
    for (const auto& config : decision.ties) {
      SQLite::Statement tie(db, "INSERT INTO decision_tie (sweep_id, config) VALUES (?, ?) ON CONFLICT DO NOTHING");
      SQLite::bind(tie, sweep, config);
      tie.exec();
    }
    return 0;
  });
}

std::optional<Decision> Database::decision(const MeasurementKey& key) const {
  return guarded(impl_->path, "reading a decision", [&]() -> std::optional<Decision> {
    const auto sweep = impl_->find_sweep(key);
    SQLite::Statement query(impl_->db, R"sql(
      SELECT d.config, d.confidence, d.margin, d.method, d.decided_at
      FROM decision d JOIN sweep s ON s.id = d.sweep_id AND s.revision = d.revision WHERE d.sweep_id = ?)sql");
    query.bind(1, sweep);
    if (!query.executeStep()) return std::nullopt;
    RowReader r(query);
    Decision decision;
    decision.key = key;
    decision.key.config = r.text();
    decision.confidence = r.real().value(), decision.margin = r.real().value();
    decision.method = r.text(), decision.decided_at = r.text();
    SQLite::Statement ties(impl_->db, "SELECT config FROM decision_tie WHERE sweep_id = ? ORDER BY config");
    ties.bind(1, sweep);
    while (ties.executeStep()) decision.ties.push_back(ties.getColumn(0).getString());
    return decision;
  });
}

void Database::record_energy(const MeasurementKey& key, double joules) {
  check_key(key, true);
  impl_->write("recording an energy", [&] {
    SQLite::Statement insert(impl_->db, R"sql(
      INSERT OR REPLACE INTO energy_result (sweep_id, config, joules, measured_at) VALUES (?, ?, ?, ?))sql");
    SQLite::bind(insert, impl_->sweep_id(key), key.config, joules, or_now(""));
    insert.exec();
    return 0;
  });
}

std::vector<EnergyRow> Database::energy(const BestQuery& query) const {
  return guarded(impl_->path, "reading energies", [&] {
    SQLite::Statement statement(impl_->db, select_from("energy",
                                                       "op, dtype, rows, cols, regime, ld, off, options, device_model, "
                                                       "device_limits, config, joules, time_us, is_base") +
                                               ", config");
    bind_query(statement, query);
    std::vector<EnergyRow> rows;
    while (statement.executeStep()) {
      RowReader r(statement);
      EnergyRow row;
      row.workload = read_workload(r);
      row.device_model = r.text(), row.device_limits = r.text(), row.config = r.text();
      row.joules = r.real().value_or(0), row.time_us = r.real().value_or(0);
      row.is_base = r.flag();
      rows.push_back(std::move(row));
    }
    return rows;
  });
}

void Database::record_accuracy(const std::vector<Accuracy>& rows) {
  for (const auto& row : rows) check_key(row.key, true);
  impl_->write("recording errors of configs", [&] {
    for (const auto& row : rows) {
      SQLite::Statement insert(impl_->db, R"sql(
        INSERT OR REPLACE INTO accuracy_result (sweep_id, config, input, elements, max_error_ulp, mean_error_ulp,
          max_rel_error, nan_count, inf_count, negative_count, false_zero_count, measured_at)
        VALUES (:sweep, :config, :input, :elements, :max, :mean, :rel, :nan, :inf, :negative, :false_zero, :at))sql");
      insert.bind(":sweep", impl_->sweep_id(row.key));
      insert.bind(":config", row.key.config);
      insert.bind(":input", row.input);
      insert.bind(":elements", row.elements);
      bind_optional(insert, ":max", row.max_error_ulp);
      bind_optional(insert, ":mean", row.mean_error_ulp);
      bind_optional(insert, ":rel", row.max_rel_error);
      insert.bind(":nan", row.nan_count);
      insert.bind(":inf", row.inf_count);
      insert.bind(":negative", row.negative_count);
      insert.bind(":false_zero", row.false_zero_count);
      insert.bind(":at", or_now(row.measured_at));
      insert.exec();
    }
    return 0;
  });
}

std::vector<AccuracyRow> Database::accuracy(const BestQuery& query) const {
  return guarded(impl_->path, "reading errors of configs", [&] {
    SQLite::Statement statement(
        impl_->db,
        select_from("accuracy",
                    "op, dtype, rows, cols, regime, ld, off, options, device_model, device_limits, toolchain, "
                    "source_fingerprint, protocol, config, input, elements, max_error_ulp, mean_error_ulp, "
                    "max_rel_error, nan_count, inf_count, negative_count, false_zero_count, measured_at, "
                    "time_us, eligible") +
            ", config, input");
    bind_query(statement, query);
    std::vector<AccuracyRow> rows;
    while (statement.executeStep()) {
      RowReader r(statement);
      AccuracyRow row;
      auto& a = row.accuracy;
      a.key.workload = read_workload(r);
      a.key.device_model = r.text(), a.key.device_limits = r.text(), a.key.toolchain = r.text();
      a.key.source_fingerprint = r.text(), a.key.protocol = r.small(), a.key.config = r.text();
      a.input = r.text(), a.elements = r.integer();
      a.max_error_ulp = r.real(), a.mean_error_ulp = r.real(), a.max_rel_error = r.real();
      a.nan_count = r.integer(), a.inf_count = r.integer(), a.negative_count = r.integer();
      a.false_zero_count = r.integer(), a.measured_at = r.text();
      row.time_us = r.real();
      row.eligible = r.flag();
      rows.push_back(std::move(row));
    }
    return rows;
  });
}

void Database::record_baselines(const std::vector<Baseline>& rows) {
  impl_->write("importing baselines", [&] {
    for (const auto& row : rows) {
      SQLite::Statement insert(impl_->db, R"sql(
        INSERT OR REPLACE INTO baseline (device_model, workload_id, impl, version, method, time_us, time_lo_us,
          time_hi_us, source, imported_at)
        VALUES (:model, :workload, :impl, :version, :method, :time, :lo, :hi, :source, :at))sql");
      insert.bind(":model", row.device_model);
      insert.bind(":workload", impl_->workload_id(row.workload));
      insert.bind(":impl", row.impl);
      insert.bind(":version", row.version);
      insert.bind(":method", row.method);
      insert.bind(":time", row.time_us);
      bind_optional(insert, ":lo", row.time_lo_us);
      bind_optional(insert, ":hi", row.time_hi_us);
      insert.bind(":source", row.source);
      insert.bind(":at", or_now(row.imported_at));
      insert.exec();
    }
    return 0;
  });
}

std::vector<BaselineRow> Database::baselines(const BestQuery& query) const {
  return guarded(impl_->path, "reading baselines", [&] {
    SQLite::Statement statement(
        impl_->db, select_from("baselines",
                               "op, dtype, rows, cols, regime, ld, off, options, device_model, impl, version, time_us, "
                               "time_lo_us, time_hi_us, method, source, imported_at, gbps, rowtune_config, "
                               "rowtune_time_us, speedup") +
                       ", impl, version, method");
    auto without_limits = query;
    without_limits.device_limits.reset();  // an import knows the model only
    bind_query(statement, without_limits);
    std::vector<BaselineRow> rows;
    while (statement.executeStep()) {
      RowReader r(statement);
      BaselineRow row;
      auto& b = row.baseline;
      b.workload = read_workload(r);
      b.device_model = r.text(), b.impl = r.text(), b.version = r.text();
      b.time_us = r.real().value_or(0), b.time_lo_us = r.real(), b.time_hi_us = r.real();
      b.method = r.text(), b.source = r.text(), b.imported_at = r.text();
      row.gbps = r.real();
      const auto config = r.text();
      if (!config.empty()) row.rowtune_config = config;
      row.rowtune_time_us = r.real(), row.speedup = r.real();
      rows.push_back(std::move(row));
    }
    return rows;
  });
}

void Database::record_stability(const StabilityRun& run, const std::vector<StabilityRow>& rows) {
  if (run.name.empty()) throw std::invalid_argument("a stability run needs a name");
  impl_->write("recording the stability study", [&] {
    auto& db = impl_->db;
    SQLite::Statement remove(db, "DELETE FROM stability_run WHERE name = ?");
    remove.bind(1, run.name);
    remove.exec();
    SQLite::Statement insert(db, R"sql(
      INSERT INTO stability_run (name, started_at, host, rowtune_version, reference, settings)
      VALUES (?, ?, ?, ?, ?, ?))sql");
    SQLite::bind(insert, run.name, or_now(run.started_at), run.host, run.rowtune_version, run.reference, run.settings);
    insert.exec();
    const auto id = db.getLastInsertRowid();
    SQLite::Statement line(db, R"sql(
      INSERT INTO stability_result (run_id, experiment, "case", op, method, "order", dtype, n, kappa, rel_error,
        ulp_error, lre, lre_ceiling, bound, bound_kind, nan_count, inf_count, negative_count, false_zero_count,
        device_model, config, note)
      VALUES (:run, :experiment, :case, :op, :method, :order, :dtype, :n, :kappa, :rel, :ulp, :lre, :lre_ceiling,
        :bound, :bound_kind, :nan, :inf, :negative, :false_zero, :model, :config, :note))sql");
    for (const auto& row : rows) {
      line.reset();
      line.clearBindings();
      line.bind(":run", id);
      line.bind(":experiment", row.experiment);
      line.bind(":case", row.case_name);
      line.bind(":op", row.op);
      line.bind(":method", row.method);
      line.bind(":order", row.order);
      line.bind(":dtype", row.dtype);
      line.bind(":n", row.n);
      bind_optional(line, ":kappa", row.kappa);
      bind_optional(line, ":rel", row.rel_error);
      bind_optional(line, ":ulp", row.ulp_error);
      bind_optional(line, ":lre", row.lre);
      bind_optional(line, ":lre_ceiling", row.lre_ceiling);
      bind_optional(line, ":bound", row.bound);
      line.bind(":bound_kind", row.bound_kind);
      line.bind(":nan", row.nan_count);
      line.bind(":inf", row.inf_count);
      line.bind(":negative", row.negative_count);
      line.bind(":false_zero", row.false_zero_count);
      line.bind(":model", row.device_model);
      line.bind(":config", row.config);
      line.bind(":note", row.note);
      line.exec();
    }
    return 0;
  });
}

std::vector<StabilityRow> Database::stability(bool latest_only) const {
  return guarded(impl_->path, "reading the stability study", [&] {
    SQLite::Statement statement(impl_->db, R"sql(
      SELECT experiment, "case", op, method, "order", dtype, n, kappa, rel_error, ulp_error, lre, lre_ceiling, bound,
             bound_kind, nan_count, inf_count, negative_count, false_zero_count, device_model, config, note, run,
             started_at, latest
      FROM stability WHERE latest OR NOT ? ORDER BY started_at, run, id)sql");
    statement.bind(1, int(latest_only));
    std::vector<StabilityRow> rows;
    while (statement.executeStep()) {
      RowReader r(statement);
      StabilityRow row;
      row.experiment = r.text(), row.case_name = r.text(), row.op = r.text(), row.method = r.text();
      row.order = r.text(), row.dtype = r.text(), row.n = r.integer();
      row.kappa = r.real(), row.rel_error = r.real(), row.ulp_error = r.real();
      row.lre = r.real(), row.lre_ceiling = r.real(), row.bound = r.real();
      row.bound_kind = r.text();
      row.nan_count = r.integer(), row.inf_count = r.integer(), row.negative_count = r.integer();
      row.false_zero_count = r.integer();
      row.device_model = r.text(), row.config = r.text(), row.note = r.text();
      row.run = r.text(), row.started_at = r.text(), row.latest = r.flag();
      rows.push_back(std::move(row));
    }
    return rows;
  });
}

std::vector<Failure> Database::failures(const BestQuery& query) const {
  return guarded(impl_->path, "reading failures", [&] {
    SQLite::Statement statement(
        impl_->db, select_from("failures",
                               "device, op, dtype, rows, cols, regime, config, status, message, is_base, eligible, ld, "
                               "off, options, algorithm, max_error_ulp, measured_at, device_model, device_limits") +
                       ", config");
    bind_query(statement, query);
    std::vector<Failure> rows;
    while (statement.executeStep()) {
      RowReader r(statement);
      Failure f;
      f.device = r.text(), f.op = r.text(), f.dtype = r.text(), f.rows = r.integer(), f.cols = r.integer();
      f.regime = r.text(), f.config = r.text(), f.status = r.text(), f.message = r.text();
      f.is_base = r.flag(), f.eligible = r.flag();
      f.ld = r.integer(), f.off = r.integer(), f.options = r.text(), f.algorithm = r.text();
      f.max_error_ulp = r.real(), f.measured_at = r.text();
      f.device_model = r.text(), f.device_limits = r.text();
      rows.push_back(std::move(f));
    }
    return rows;
  });
}

std::vector<Coverage> Database::coverage(const BestQuery& query) const {
  return guarded(impl_->path, "reading coverage", [&] {
    SQLite::Statement statement(
        impl_->db, select_from("coverage",
                               "device, op, dtype, rows, cols, regime, measured, space_size, fraction, ok, failed, "
                               "ineligible, unsettled, decided, has_ceiling, older_results, first_measured_at, "
                               "last_measured_at, units, ld, off, options, toolchain, source_fingerprint, protocol, "
                               "device_model, device_limits"));
    bind_query(statement, query);
    std::vector<Coverage> rows;
    while (statement.executeStep()) {
      RowReader r(statement);
      Coverage c;
      c.device = r.text(), c.op = r.text(), c.dtype = r.text(), c.rows = r.integer(), c.cols = r.integer();
      c.regime = r.text(), c.measured = r.integer(), c.space_size = r.maybe_integer(), c.fraction = r.real();
      c.ok = r.integer(), c.failed = r.integer(), c.ineligible = r.integer(), c.unsettled = r.integer();
      c.decided = r.flag(), c.has_ceiling = r.flag(), c.older_results = r.integer();
      c.first_measured_at = r.text(), c.last_measured_at = r.text(), c.units = r.integer();
      c.ld = r.integer(), c.off = r.integer(), c.options = r.text();
      c.toolchain = r.text(), c.source_fingerprint = r.text(), c.protocol = r.small();
      c.device_model = r.text(), c.device_limits = r.text();
      rows.push_back(std::move(c));
    }
    return rows;
  });
}

std::set<DeviceWorkload> Database::unswept(const BestQuery& query) const {
  return guarded(impl_->path, "reading which workloads were swept", [&] {
    SQLite::Statement statement(
        impl_->db,
        fmt::format("SELECT w.op, w.dtype, w.rows, w.cols, w.regime, w.ld, w.off, w.options, v.model, v.limits "
                    "FROM current_sweep s JOIN workload w ON w.id = s.workload_id JOIN device v ON v.id = s.device_id "
                    "WHERE s.space_size IS NULL AND {}",
                    workload_filter));
    bind_query(statement, query);
    std::set<DeviceWorkload> found;
    while (statement.executeStep()) {
      RowReader r(statement);
      DeviceWorkload each;
      each.workload = read_workload(r);
      each.device_model = r.text(), each.device_limits = r.text();
      found.insert(std::move(each));
    }
    return found;
  });
}

}  // namespace rowtune::db
