#pragma once
// Opening a file with care: nothing is written to a file before it is known to be ours.

#include <SQLiteCpp/SQLiteCpp.h>

#include <string>

#include "db/database.hpp"
#include "db/schema.hpp"

namespace rowtune::db {

/// Opens as Database::open says. `list` is the schema to bring the file to: migrations(), or a test's own.
SQLite::Database open_connection(const std::string& path, Database::Mode mode, const Settings& settings,
                                 const std::vector<Migration>& list);

/// How SQLite should be told to open a file for reading only, as a URI: as immutable where locks cannot be
/// taken, or (`tidy`) able to write, so that it removes its log's files at the end.
std::string reader_uri(const std::string& path, bool tidy = false);

/// Whether write-ahead logging works on a filesystem of this type (statfs's f_type): it needs memory shared by all
/// who open the file, which network filesystems do not give.
bool allows_write_ahead_log(long filesystem_type);

}  // namespace rowtune::db
