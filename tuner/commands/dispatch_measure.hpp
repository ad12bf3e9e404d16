#pragma once
// What of rowtune dispatch measures on a device.

#include "tuner/cli.hpp"
#include "tuner/dispatch_table.hpp"

namespace rowtune {

/// Tunes shapes that the tables do not have into the database of --against, which a second run continues. False:
/// interrupted.
bool tune_off_grid(const CommandLine& line, const DispatchTables& tables);

/// dispatch --refine: what the answers off the grid hang on is measured into the database. Returns an exit code.
int refine_tables(const CommandLine& line, const db::BestQuery& only, const DispatchSettings& settings, Format format);

}  // namespace rowtune
