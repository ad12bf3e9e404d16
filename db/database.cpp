// Opening, keys and writing of measurements.

#include "db/database.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <stdexcept>

#include "db/impl.hpp"
#include "db/open.hpp"
#include "db/schema.hpp"

namespace rowtune::db {
namespace {

/// JSON array with the shortest digits that read back the same; what is not finite becomes null.
std::string to_json(const std::vector<double>& values) {
  std::string text = "[";
  for (const double value : values) {
    if (text.size() > 1) text += ',';
    text += std::isfinite(value) ? fmt::format("{}", value) : "null";
  }
  return text + "]";
}

std::int64_t only_id(SQLite::Statement& statement) {
  return statement.executeStep() ? statement.getColumn(0).getInt64() : 0;
}

void bind_workload(SQLite::Statement& statement, const Workload& w) {
  statement.bind(":op", to_string(w.op));
  statement.bind(":dtype", to_string(w.dtype));
  statement.bind(":rows", w.shape.rows);
  statement.bind(":cols", w.shape.cols);
  statement.bind(":ld", w.shape.ld);
  statement.bind(":off", w.shape.off);
  statement.bind(":regime", to_string(w.regime));
  statement.bind(":options", to_string(w.options));
}

}  // namespace

std::string now_utc() {
  const auto now = std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto seconds = std::chrono::time_point_cast<std::chrono::seconds>(now);
  return fmt::format("{:%Y-%m-%dT%H:%M}:{:02}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     seconds.time_since_epoch().count() % 60, (now - seconds).count());
}

void check_key(const MeasurementKey& key, bool with_config) {
  const auto need = [](const std::string& value, const char* what) {
    if (value.empty()) throw std::invalid_argument(fmt::format("a measurement's key has an empty {}", what));
  };
  need(key.device_model, "device_model");
  need(key.toolchain, "toolchain");
  need(key.source_fingerprint, "source_fingerprint");
  if (with_config) need(key.config, "config");
}

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::~Database() = default;
Database::Database(Database&&) noexcept = default;

Database Database::open(const std::string& path, Mode mode, const Settings& settings) {
  return Database(std::unique_ptr<Impl>(new Impl(open_connection(path, mode, settings, migrations()), path)));
}

const std::string& Database::path() const { return impl_->path; }

std::string Database::Impl::saved_so_far() const {
  return saved == 0 ? "what the file had before is unharmed"
                    : fmt::format("the {} results recorded before are saved", saved);
}

Prepared Database::Impl::prepare(std::string_view literal) {
  auto found = statements.find(literal);
  if (found == statements.end()) found = statements.emplace(literal, SQLite::Statement(db, std::string(literal))).first;
  return Prepared(found->second);
}

std::int64_t Database::Impl::find_device(const MeasurementKey& key) {
  auto find = prepare("SELECT id FROM device WHERE model = ? AND limits = ?");
  SQLite::bind(*find, key.device_model, key.device_limits);
  return only_id(*find);
}

std::int64_t Database::Impl::find_workload(const Workload& workload) {
  auto find = prepare(R"sql(
    SELECT id FROM workload WHERE op = :op AND dtype = :dtype AND rows = :rows AND cols = :cols AND ld = :ld
      AND off = :off AND regime = :regime AND options = :options)sql");
  bind_workload(*find, workload);
  return only_id(*find);
}

// Three look-ups by unique index: the planner took a join of them through all sweeps of the device.
std::int64_t Database::Impl::find_sweep(const MeasurementKey& key) {
  auto find = prepare(R"sql(
    SELECT id FROM sweep WHERE device_id = ? AND workload_id = ? AND toolchain = ? AND source_fingerprint = ?
      AND protocol = ?)sql");
  SQLite::bind(*find, find_device(key), find_workload(key.workload), key.toolchain, key.source_fingerprint,
               key.protocol);
  return only_id(*find);
}

std::int64_t Database::Impl::workload_id(const Workload& workload) {
  if (const auto found = find_workload(workload)) return found;
  auto insert = prepare(R"sql(
    INSERT INTO workload (op, dtype, rows, cols, ld, off, regime, options, bytes, ceiling_rows)
    VALUES (:op, :dtype, :rows, :cols, :ld, :off, :regime, :options, :bytes, :ceiling_rows))sql");
  bind_workload(*insert, workload);
  insert->bind(":bytes", bytes_moved(workload));
  insert->bind(":ceiling_rows", ceiling_of(workload).shape.rows);
  insert->exec();
  return db.getLastInsertRowid();
}

std::int64_t Database::Impl::sweep_id(const MeasurementKey& key) {
  if (const auto found = find_sweep(key)) return found;
  auto device = find_device(key);
  if (device == 0) {
    auto insert = prepare("INSERT INTO device (model, limits) VALUES (?, ?)");
    SQLite::bind(*insert, key.device_model, key.device_limits);
    insert->exec();
    device = db.getLastInsertRowid();
  }
  auto insert = prepare(R"sql(
    INSERT INTO sweep (device_id, workload_id, toolchain, source_fingerprint, protocol, last_used_at)
    VALUES (?, ?, ?, ?, ?, ''))sql");
  SQLite::bind(*insert, device, workload_id(key.workload), key.toolchain, key.source_fingerprint, key.protocol);
  insert->exec();
  return db.getLastInsertRowid();
}

std::int64_t Database::Impl::find_measurement(std::int64_t sweep, const std::string& config) {
  auto find = prepare("SELECT id FROM measurement WHERE sweep_id = ? AND config = ?");
  SQLite::bind(*find, sweep, config);
  return only_id(*find);
}

void Database::Impl::set_base(std::int64_t sweep, const std::string& config) {
  auto others = prepare("UPDATE measurement SET is_base = 0 WHERE sweep_id = ? AND is_base = 1 AND config <> ?");
  SQLite::bind(*others, sweep, config);
  others->exec();
  auto this_one = prepare("UPDATE measurement SET is_base = 1 WHERE sweep_id = ? AND is_base = 0 AND config = ?");
  SQLite::bind(*this_one, sweep, config);
  this_one->exec();
}

std::int64_t Database::Impl::run_id(const Provenance& p) {
  auto insert = prepare(R"sql(
    INSERT INTO run (device, uuid, driver, host, rowtune_version, started_at) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING)sql");
  SQLite::bind(*insert, p.device, p.uuid, p.driver, p.host, p.rowtune_version, p.started_at);
  insert->exec();
  auto find = prepare(R"sql(
    SELECT id FROM run WHERE device = ? AND uuid = ? AND driver = ? AND host = ? AND rowtune_version = ?
      AND started_at = ?)sql");
  SQLite::bind(*find, p.device, p.uuid, p.driver, p.host, p.rowtune_version, p.started_at);
  return only_id(*find);
}

bool Database::Impl::insert(const Measurement& m, bool replace, const std::string& now) {
  check_key(m.key, true);
  const bool ok = m.outcome == Outcome::ok;
  if (ok && !(m.time_us && std::isfinite(*m.time_us) && *m.time_us >= 0))
    throw std::invalid_argument(
        fmt::format("{} {}: outcome ok without a finite time", to_string(m.key.workload), m.key.config));
  const auto sweep = sweep_id(m.key);
  if (replace) {
    auto remove = prepare("DELETE FROM measurement WHERE sweep_id = ? AND config = ?");
    SQLite::bind(*remove, sweep, m.key.config);
    remove->exec();
  }
  if (find_measurement(sweep, m.key.config) != 0) return false;
  auto insert = prepare(R"sql(
    INSERT INTO measurement (sweep_id, config, run_id, measured_at, outcome, eligible, is_base, time_us, time_lo_us,
      time_hi_us, max_error_ulp, algorithm, block_size, rows_per_warp, vector_width, split_count, extra_axes,
      sample_count, settled, launches_per_sample, bytes_in_rotation, registers, spill_bytes, shared_bytes,
      blocks_per_unit, binary_hash, clocks, message)
    VALUES (:sweep, :config, :run, :measured_at, :outcome, :eligible, :is_base, :time, :lo, :hi, :max_error, :algorithm,
      :block, :rows_per_warp, :vector, :split, :extra, :samples, :settled, :launches, :rotation, :registers, :spill,
      :shared, :blocks_per_unit, :binary_hash, :clocks, :message))sql");
  insert->bind(":sweep", sweep);
  insert->bind(":config", m.key.config);
  insert->bind(":run", run_id(m.provenance));
  insert->bind(":measured_at", m.measured_at.empty() ? now : m.measured_at);
  insert->bind(":outcome", to_string(m.outcome));
  insert->bind(":eligible", int(m.eligible));
  insert->bind(":is_base", 0);
  bind_optional(*insert, ":time", ok ? m.time_us : std::nullopt);
  bind_optional(*insert, ":lo", ok ? m.time_lo_us : std::nullopt);
  bind_optional(*insert, ":hi", ok ? m.time_hi_us : std::nullopt);
  bind_optional(*insert, ":max_error", m.max_error_ulp);
  insert->bind(":algorithm", m.algorithm);
  insert->bind(":block", m.block_size);
  insert->bind(":rows_per_warp", m.rows_per_warp);
  insert->bind(":vector", m.vector_width);
  insert->bind(":split", m.split_count);
  insert->bind(":extra", m.extra_axes);
  insert->bind(":samples", m.sample_count);
  insert->bind(":settled", int(m.settled));
  insert->bind(":launches", m.launches_per_sample);
  insert->bind(":rotation", m.bytes_in_rotation);
  insert->bind(":registers", m.facts.registers);
  insert->bind(":spill", m.facts.spill_bytes);
  insert->bind(":shared", m.facts.shared_bytes);
  insert->bind(":blocks_per_unit", m.facts.blocks_per_unit);
  insert->bind(":binary_hash", m.facts.binary_hash);
  insert->bind(":clocks", m.clocks);
  insert->bind(":message", m.message);
  insert->exec();
  const auto id = db.getLastInsertRowid();
  if (!m.samples_us.empty()) {
    auto samples = prepare("INSERT INTO sample (measurement_id, samples_us) VALUES (?, ?)");
    SQLite::bind(*samples, id, to_json(m.samples_us));
    samples->exec();
  }
  if (m.is_base) set_base(sweep, m.key.config);
  auto touch = prepare(R"sql(
    UPDATE sweep SET revision = revision + 1, last_used_at = max(last_used_at, ?) WHERE id = ?)sql");
  SQLite::bind(*touch, m.measured_at.empty() ? now : m.measured_at, sweep);
  touch->exec();
  return true;
}

bool Database::record(const Measurement& m, bool replace) {
  const bool written = impl_->write("recording a result", [&] { return impl_->insert(m, replace, now_utc()); });
  impl_->saved += int(written);
  return written;
}

std::int64_t Database::record_all(const std::vector<Measurement>& all, bool replace) {
  const auto written = impl_->write("recording results", [&] {
    const auto now = now_utc();
    std::int64_t count = 0;
    for (const auto& m : all) count += int(impl_->insert(m, replace, now));
    return count;
  });
  impl_->saved += written;
  return written;
}

void Database::begin_sweep(const MeasurementKey& key, std::optional<std::int64_t> space_size,
                           const std::string& base_config) {
  check_key(key, false);
  impl_->write("beginning a sweep", [&] {
    const auto sweep = impl_->sweep_id(key);
    SQLite::Statement touch(impl_->db, R"sql(
      UPDATE sweep SET last_used_at = max(last_used_at, :now), space_size = coalesce(:size, space_size)
      WHERE id = :sweep)sql");
    touch.bind(":now", now_utc());
    if (space_size) touch.bind(":size", *space_size);
    touch.bind(":sweep", sweep);
    touch.exec();
    if (!base_config.empty() && impl_->find_measurement(sweep, base_config) != 0) impl_->set_base(sweep, base_config);
    return 0;
  });
}

}  // namespace rowtune::db
