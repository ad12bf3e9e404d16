#pragma once
// How the plane of columns and rows is cut into the pieces that a table decides one by one.

#include <cstdint>
#include <vector>

#include "tuner/dispatch_measured.hpp"

namespace rowtune {

/// Ends of intervals, ascending, of which each begins behind the one before, the first at the least. Empty: nothing to
/// decide.
struct Plane {
  std::int64_t least_cols = 0, least_rows = 0;
  std::vector<std::int64_t> col_ends, row_ends;
};

/// Cut at the tuned shapes (each extent alone, since it will be asked for again), between them, and up to a factor of
/// eight beyond. Places off the grid cut nothing, so that the pieces stay when more of them are measured.
Plane plane_of(const MeasuredTable& measured);

/// Of an interval, by the logarithm.
double middle(std::int64_t first, std::int64_t last);

}  // namespace rowtune
