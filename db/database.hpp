#pragma once
// The SQLite file: schema, migrations, writes, reads. The only code of rowtune that speaks SQL.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/records.hpp"

namespace rowtune::db {

struct BestQuery {
  std::optional<std::string> device_model;  ///< absent: every model in the file
  std::optional<Operation> op;
  std::optional<Dtype> dtype;
  std::optional<Shape> shape;
  std::optional<Regime> regime;
  std::optional<double> max_error_ulp;  ///< only configs at most this wrong
  int top = 1;                          ///< ranks 1..top of each workload
};

class Database {
 public:
  enum class Mode { read_only, read_write };  ///< read_write creates the file when it is missing

  /// Opens, checks application_id, migrates an older schema (read_write), waits up to 30 s for other writers.
  /// Throws EnvironmentError saying what, where and what to do: missing (read_only), unreadable, read-only, not a
  /// database, somebody else's database, newer schema than this program. A refused file is left as it was.
  static Database open(const std::string& path, Mode mode);
  ~Database();
  Database(Database&&) noexcept;

  const std::string& path() const;

  /// One commit. Replaces a row with the same key only if `replace` (a deliberate re-measuring).
  /// Throws EnvironmentError on a full disk or a lock that does not go away, saying what was saved.
  void record(const Measurement& m, bool replace = false);
  /// Names of the configs that the file has under this key (its `config` field is ignored), whatever their outcome.
  std::vector<std::string> recorded_configs(const MeasurementKey& key) const;
  std::vector<Measurement> measurements(const MeasurementKey& key) const;  ///< config field ignored
  std::int64_t measurement_count() const;

  /// The view `best` / `leaderboard` as records, ordered by device, op, dtype, cols, rows, regime, rank.
  std::vector<BestRow> best(const BestQuery& query) const;
  /// Every row of the leaderboard of the matching workloads.
  std::vector<BestRow> leaderboard(const BestQuery& query) const;

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowtune::db
