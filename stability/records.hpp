#pragma once
// The study's results as records of the database.

#include "db/database.hpp"
#include "stability/findings.hpp"

namespace rowtune::stability {

/// One run per options: repeating a study replaces it.
void record(db::Database& database, const std::vector<Result>& results, const StudyFacts& facts);
db::StabilityRow as_row(const Result& result);

}  // namespace rowtune::stability
