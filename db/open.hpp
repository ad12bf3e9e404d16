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

/// Whether write-ahead logging works on a filesystem of this type (statfs's f_type): it needs memory shared by all
/// who open the file, which network filesystems do not give.
bool allows_write_ahead_log(long filesystem_type);

}  // namespace rowtune::db
