#pragma once
// The SQLite file: schema, migrations, writes, reads. The only code of rowtune that speaks SQL.
// A Database is used by one thread at a time; several processes may write the same file.

#include <memory>
#include <optional>
#include <set>
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
  std::optional<std::string> device_limits;
  std::optional<Options> options;
  std::optional<std::string> uuid;  ///< only what was measured on this very unit, not on others of its model
};

struct Settings {
  int busy_timeout_ms = 30'000;  ///< how long to wait for another writer
  std::int64_t max_pages = 0;    ///< a limit for the file's size, in pages of 4096 bytes; 0: none
};

class Database {
 public:
  enum class Mode { read_only, read_write };  ///< read_write creates the file when it is missing

  /// Opens, checks application_id, migrates an older schema (read_write), waits up to 30 s for other writers.
  /// Throws EnvironmentError saying what, where and what to do: missing (read_only), unreadable, read-only, not a
  /// database, somebody else's database, newer schema than this program. A refused file is left as it was.
  static Database open(const std::string& path, Mode mode, const Settings& settings = {});
  ~Database();
  Database(Database&&) noexcept;

  const std::string& path() const;

  /// Says that this sweep (`key` without its config) is the one in use from now on: a resumed run with nothing left to
  /// measure becomes current again. `space_size` and `base_config` are stored when given. One commit.
  void begin_sweep(const MeasurementKey& key, std::optional<std::int64_t> space_size = {},
                   const std::string& base_config = {});

  /// One commit. Replaces a row with the same key only if `replace` (a deliberate re-measuring); otherwise the row
  /// that is there stays, and the answer is false. An outcome other than ok is stored without a time.
  /// Throws EnvironmentError on a full disk or a lock that does not go away, saying what was saved, and
  /// std::invalid_argument for a key with an empty field or an ok without a time.
  bool record(const Measurement& m, bool replace = false);
  /// Many in one commit: for imports. Returns how many were new.
  std::int64_t record_all(const std::vector<Measurement>& all, bool replace = false);
  /// Names of the configs that the file has under this key (its `config` field is ignored), whatever their outcome.
  /// With `uuid`, only those measured on that very unit.
  std::vector<std::string> recorded_configs(const MeasurementKey& key,
                                            const std::optional<std::string>& uuid = {}) const;
  std::vector<Measurement> measurements(const MeasurementKey& key) const;  ///< config field ignored
  std::int64_t measurement_count() const;

  /// The tuner's choice for a sweep, made on the measurements that are in the file now: a measurement recorded later
  /// makes it stale, and `best` then goes back to medians and intervals. The config must be among them: NotFoundError.
  void record_decision(const Decision& decision);
  std::optional<Decision> decision(const MeasurementKey& key) const;  ///< config ignored; absent when stale

  /// Joules per launch of a config that was measured (`key.config`); replaces what was there. One commit.
  void record_energy(const MeasurementKey& key, double joules);
  std::vector<EnergyRow> energy(const BestQuery& query = {}) const;

  void record_accuracy(const std::vector<Accuracy>& rows);  ///< one commit; the same key and input is replaced
  std::vector<AccuracyRow> accuracy(const BestQuery& query = {}) const;
  void record_baselines(const std::vector<Baseline>& rows);  ///< one commit; same impl, version, method: replaced
  std::vector<BaselineRow> baselines(const BestQuery& query = {}) const;
  void record_stability(const StabilityRun& run, const std::vector<StabilityRow>& rows);  ///< one commit
  std::vector<StabilityRow> stability(bool latest_only = true) const;                     ///< in the order recorded

  /// The view `best` / `leaderboard` as records, ordered by device, op, dtype, cols, rows, regime, rank.
  /// With `max_error_ulp` or `uuid` the winner is chosen anew among the configs that pass.
  std::vector<BestRow> best(const BestQuery& query) const;
  /// Every row of the leaderboard of the matching workloads (`top` is ignored).
  std::vector<BestRow> leaderboard(const BestQuery& query) const;
  std::vector<Failure> failures(const BestQuery& query = {}) const;
  std::vector<Coverage> coverage(const BestQuery& query = {}) const;
  /// Workloads that nobody set out to sweep: single configs of them were measured, and no run gave the size of their
  /// space to `begin_sweep`.
  std::set<DeviceWorkload> unswept(const BestQuery& query = {}) const;

  /// Joins another rowtune file into this one, in one commit. What is here already stays; doing it twice changes
  /// nothing the second time. Throws EnvironmentError when the other file is refused.
  MergeCounts merge_from(const std::string& other);

  /// Makes the file small for sharing: drops all samples, and the configs that are on no workload of their device,
  /// operation and dtype among the first `contenders`, tied with the winner, or the base. Of copies only each winner
  /// stays. The view `best` keeps its winners and their numbers. Returns how many measurements were dropped.
  std::int64_t prune(int contenders);

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowtune::db
