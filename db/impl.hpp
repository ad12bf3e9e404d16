#pragma once
// What a Database holds, and the helpers that its parts (writes, reads, merge) share.

#include <SQLiteCpp/SQLiteCpp.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "db/database.hpp"
#include "db/transaction.hpp"

namespace rowtune::db {

/// A statement borrowed from the cache; reset when given back, so that it holds no lock.
class Prepared {
 public:
  explicit Prepared(SQLite::Statement& statement) : statement_(statement) {}
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared() {
    statement_.tryReset();
    statement_.clearBindings();
  }
  SQLite::Statement& operator*() { return statement_; }
  SQLite::Statement* operator->() { return &statement_; }

 private:
  SQLite::Statement& statement_;
};

struct Database::Impl {
  Impl(SQLite::Database opened, std::string name) : db(std::move(opened)), path(std::move(name)) {}

  SQLite::Database db;
  std::string path;
  std::int64_t saved = 0;                                    ///< results committed through this object
  std::map<std::string_view, SQLite::Statement> statements;  ///< by their text, which is a literal

  /// Preparing costs more than most of our statements take to run.
  Prepared prepare(std::string_view literal);

  /// Ids of the row with these values; 0 when there is none.
  std::int64_t find_device(const MeasurementKey& key);
  std::int64_t find_workload(const Workload& workload);
  std::int64_t find_sweep(const MeasurementKey& key);
  std::int64_t find_measurement(std::int64_t sweep, const std::string& config);
  /// The same, made when missing. Inside a write transaction.
  std::int64_t workload_id(const Workload& workload);
  std::int64_t sweep_id(const MeasurementKey& key);
  std::int64_t run_id(const Provenance& provenance);
  /// Makes this measured config the base of the sweep: a sweep has one base, the one named last.
  void set_base(std::int64_t sweep, const std::string& config);

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
