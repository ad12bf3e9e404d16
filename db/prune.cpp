// A small file for sharing: what decides, without what was beaten everywhere.

#include "db/impl.hpp"

namespace rowtune::db {

std::int64_t Database::prune(int contenders) {
  const auto removed = impl_->write("pruning", [&] {
    auto& db = impl_->db;
    db.exec(
        "CREATE TEMP TABLE kept (model TEXT, limits TEXT, op TEXT, dtype TEXT, config TEXT, "
        "PRIMARY KEY (model, limits, op, dtype, config)) WITHOUT ROWID");
    // A config that is near the top of one workload stays for all workloads of its operation and dtype, since which
    // config suits a shape that was not tuned is learnt from how each does on all those that were. Of the copies, which
    // are yardsticks, each workload keeps its own winner.
    SQLite::Statement keep(db, R"sql(
      INSERT OR IGNORE INTO kept SELECT device_model, device_limits, op, dtype, config FROM leaderboard
      WHERE op <> 'copy' AND (rank <= :contenders OR is_tie = 1 OR is_base = 1))sql");
    keep.bind(":contenders", contenders);
    keep.exec();
    db.exec(
        "CREATE TEMP TABLE kept_copy AS SELECT device_model, device_limits, dtype, rows, cols, ld, off, regime, "
        "options, config FROM leaderboard WHERE op = 'copy' AND (rank = 1 OR is_base = 1)");
    db.exec("DELETE FROM sample");
    const int count = db.exec(R"sql(
      DELETE FROM measurement WHERE id NOT IN (
        SELECT m.id FROM measurement m JOIN sweep s ON s.id = m.sweep_id JOIN device v ON v.id = s.device_id
        JOIN workload w ON w.id = s.workload_id
        WHERE (v.model, v.limits, w.op, w.dtype, m.config) IN (SELECT model, limits, op, dtype, config FROM kept)
        OR (w.op = 'copy' AND (v.model, v.limits, w.dtype, w.rows, w.cols, w.ld, w.off, w.regime, w.options, m.config)
            IN (SELECT * FROM kept_copy))))sql");
    db.exec("DROP TABLE kept_copy");
    db.exec("DROP TABLE kept");
    return std::int64_t{count};
  });
  guarded(impl_->path, "pruning", [&] {
    impl_->db.exec("VACUUM");
    impl_->db.exec("PRAGMA journal_mode = DELETE");  // readable where nothing can be written beside it
    return 0;
  });
  return removed;
}

}  // namespace rowtune::db
