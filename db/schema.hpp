#pragma once
// The schema: tables come from numbered migrations, views are derived from the program and made anew after each.

#include <SQLiteCpp/SQLiteCpp.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rowtune::db {

/// `RowT` in ASCII: marks a file as ours (PRAGMA application_id).
inline constexpr int application_id = 0x526F7754;

struct Migration {
  int version;  ///< what user_version is afterwards; versions ascend
  std::function<void(SQLite::Database&)> apply;
};

/// Every migration from an empty file to today's schema.
const std::vector<Migration>& migrations();
int newest_schema();

/// Brings the file to the last version of `list`: each migration in a transaction of its own that also sets
/// user_version, so that an interruption leaves a whole schema of some version. Safe against another process doing the
/// same. `refresh_views` runs inside the last transaction.
void migrate(SQLite::Database& db, const std::vector<Migration>& list,
             const std::function<void(SQLite::Database&)>& refresh_views);

/// Drops every view, and creates the public ones.
void drop_views(SQLite::Database& db);
void create_views(SQLite::Database& db);

enum class Ranks { winner, all };

/// The select behind the views `best` (winner) and `leaderboard` (all). The two filters are SQL conditions over `w`
/// (workload) and `v` (device), and over `m` (measurement); `1` filters nothing. One text for the view and for
/// parametrised queries, so that they cannot disagree.
std::string leaderboard_sql(Ranks ranks, std::string_view workload_filter, std::string_view config_filter);

/// The columns of `best` and `leaderboard`, in order, separated by commas.
extern const std::string_view leaderboard_columns;

}  // namespace rowtune::db
