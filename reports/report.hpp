#pragma once
// What a database says, for people: read through db::Database only, never measured here. The same database gives the
// same bytes: every date comes from the data.

#include <iosfwd>

#include "db/database.hpp"

namespace rowtune::reports {

/// What was tuned, on what and when; the winners of each operation; failures by reason; coverage; what to be careful
/// with; how to read it; what to do next. An empty database gives a page that says what is missing and how to get it.
void write_markdown(const db::Database& database, std::ostream& out);

/// Every config of every current sweep, failures included (`rank` 1 is the winner): the view `leaderboard`.
void write_csv(const db::Database& database, std::ostream& out);

/// One self-contained page: tables, charts, filters, the data itself. It loads nothing from anywhere, and text from the
/// database stays text.
void write_html(const db::Database& database, std::ostream& out);

}  // namespace rowtune::reports
