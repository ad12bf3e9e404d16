#pragma once
// Small pieces around SQLiteCpp that every file of db/ needs: a write transaction, a row reader, error translation.

#include <SQLiteCpp/SQLiteCpp.h>
#include <SQLiteCpp/VariadicBind.h>
#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/errors.hpp"

namespace rowtune::db {

/// BEGIN IMMEDIATE ... COMMIT. Immediate, because a transaction that starts as a reader and then writes is refused at
/// once in WAL mode when another writer came between, without waiting for the busy timeout.
class WriteTransaction {
 public:
  explicit WriteTransaction(SQLite::Database& db) : db_(db) { db_.exec("BEGIN IMMEDIATE"); }
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;
  /// Rolls back what was not committed. SQLite rolls back by itself on a full disk, hence the question first.
  ~WriteTransaction() {
    if (!committed_ && sqlite3_get_autocommit(db_.getHandle()) == 0) db_.tryExec("ROLLBACK");
  }
  void commit() {
    db_.exec("COMMIT");
    committed_ = true;
  }

 private:
  SQLite::Database& db_;
  bool committed_ = false;
};

/// Reads the columns of a row from left to right, so that a SELECT list and the record it fills stand side by side.
class RowReader {
 public:
  explicit RowReader(SQLite::Statement& statement) : statement_(statement) {}
  std::string text() { return next().getString(); }
  std::int64_t integer() { return next().getInt64(); }
  int small() { return next().getInt(); }
  bool flag() { return next().getInt() != 0; }
  std::optional<double> real() {
    const auto column = next();
    return column.isNull() ? std::nullopt : std::optional(column.getDouble());
  }
  std::optional<std::int64_t> maybe_integer() {
    const auto column = next();
    return column.isNull() ? std::nullopt : std::optional(column.getInt64());
  }

 private:
  SQLite::Column next() { return statement_.getColumn(index_++); }
  SQLite::Statement& statement_;
  int index_ = 0;
};

/// Absent (and NaN, which SQLite has no place for) becomes NULL.
inline void bind_optional(SQLite::Statement& statement, const char* name, const std::optional<double>& value) {
  if (value)
    statement.bind(name, *value);
  else
    statement.bind(name);
}

/// Throws EnvironmentError: which file, what was being done, what SQLite said, what to do about it.
/// `saved` describes what is safe, for a disk that fills up; may be empty.
[[noreturn]] void throw_environment_error(const std::string& path, const std::string& doing,
                                          const SQLite::Exception& error, const std::string& saved = {});

/// For a file that holds a word which is none of rowtune's.
[[noreturn]] void throw_unknown_word(const std::string& path, const UsageError& error);

/// Runs `body` and translates what SQLite throws, and what the parsers say about words in the file.
template <class Body>
decltype(auto) guarded(const std::string& path, const char* doing, Body&& body) {
  try {
    return body();
  } catch (const SQLite::Exception& error) {
    throw_environment_error(path, doing, error);
  } catch (const UsageError& error) {
    throw_unknown_word(path, error);
  }
}

}  // namespace rowtune::db
