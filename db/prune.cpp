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
    // config suits a shape that was not tuned is learnt from how each does on all those that were.
    SQLite::Statement keep(db, R"sql(
      INSERT OR IGNORE INTO kept
      SELECT device_model, device_limits, op, dtype, config FROM leaderboard
      WHERE (rank <= CASE op WHEN 'copy' THEN 1 ELSE :contenders END OR is_tie = 1 OR is_base = 1))sql");
    keep.bind(":contenders", contenders);
    keep.exec();
    db.exec("DELETE FROM sample");
    const int count = db.exec(R"sql(
      DELETE FROM measurement WHERE NOT EXISTS (
        SELECT 1 FROM sweep s JOIN device v ON v.id = s.device_id JOIN workload w ON w.id = s.workload_id
        JOIN kept k ON k.model = v.model AND k.limits = v.limits AND k.op = w.op AND k.dtype = w.dtype
                       AND k.config = measurement.config
        WHERE s.id = measurement.sweep_id))sql");
    db.exec("DROP TABLE kept");
    return std::int64_t{count};
  });
  guarded(impl_->path, "pruning", [&] {
    impl_->db.exec("VACUUM");
    impl_->db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    return 0;
  });
  return removed;
}

}  // namespace rowtune::db
