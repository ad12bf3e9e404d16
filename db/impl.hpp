#pragma once
// What a Database holds, and the helpers that its parts (writes, reads, merge) share.

#include <SQLiteCpp/SQLiteCpp.h>

#include <memory>
#include <string>

#include "db/database.hpp"
#include "db/transaction.hpp"

namespace rowtune::db {

struct Database::Impl {
  SQLite::Database db;
  std::string path;
  std::int64_t saved = 0;  ///< results committed through this object

  /// Ids of the row with these values, made when missing. Inside a write transaction.
  std::int64_t device_id(const std::string& model, const std::string& limits);
  std::int64_t workload_id(const Workload& workload);
  std::int64_t sweep_id(const MeasurementKey& key);
  std::int64_t run_id(const Provenance& provenance);
  /// 0 when the file has no such sweep.
  std::int64_t find_sweep(const MeasurementKey& key);

  bool insert(const Measurement& m, bool replace, const std::string& now);

  /// Runs `body` in one write transaction; errors become EnvironmentError with what was saved before.
  template <class Body>
  auto write(const char* doing, Body&& body) {
    try {
      WriteTransaction transaction(db);
      auto result = body();
      transaction.commit();
      return result;
    } catch (const SQLite::Exception& error) {
      throw_environment_error(path, doing, error, saved_so_far());
    }
  }
  std::string saved_so_far() const;
};

/// Throws std::invalid_argument when a part of the key is empty: such rows could never be told apart again.
void check_key(const MeasurementKey& key, bool with_config);

/// UTC with milliseconds, ISO 8601: `2026-01-31T12:00:00.123Z`. Sorts as text.
std::string now_utc();

/// Binds :model, :op, :dtype, ... of a query over workloads, devices and runs; pairs with `workload_filter`.
void bind_query(SQLite::Statement& statement, const BestQuery& query);
extern const char* const workload_filter;  ///< over `w` (workload) and `v` (device), or any alias with such columns

}  // namespace rowtune::db
