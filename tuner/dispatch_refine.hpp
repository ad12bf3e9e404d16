#pragma once
// Which measurements off the grid would make a table better: where its answers are guesses, and what to measure there.
// All of it follows from what was measured, so that a run that was stopped goes on where it was.

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tuner/dispatch_measured.hpp"
#include "tuner/dispatch_predict.hpp"

namespace rowtune {

/// Contiguous shapes that were not tuned, the one that matters most first, at most `most`: in the middles of pieces of
/// the plane, far from where their answers were measured and from each other. A piece counts the more the nearer it is
/// to a tuned shape. What was measured off the grid has no say: the same tuned shapes give the same places.
std::vector<Shape> places_off_grid(const MeasuredTable& measured, const DispatchSettings& settings, std::size_t most);

/// A place off the grid: what may run there, and what has a result.
struct Place {
  Workload workload;
  std::string base;
  std::function<bool(const std::string&)> is_legal;
  std::set<std::string> known;  ///< configs with a result, right or not
};

/// What a table answers off the grid, and what that hangs on.
class Answers {
 public:
  /// `measured`: what the table was built from. Both are kept.
  Answers(const MeasuredTable& measured, const DispatchTable& table);

  /// A config; where the table says the base, that of the place.
  std::string at(const Place& place) const;
  /// Those without a result of: the answer, the base, the next best few that the table holds, and the best that it does
  /// not hold. "Best" is by what was measured at the place, and predicted for the others: what turns out slower than
  /// predicted calls for another, until the best few are facts.
  std::vector<std::string> wanted_at(const Place& place) const;

 private:
  const MeasuredTable& measured_;
  const DispatchTable& table_;
  LookupTable view_;
  std::vector<std::string> configs_;
  std::set<std::string> in_table_;
  Predictor predictor_;
  std::map<Shape, const MeasuredWorkload*> off_grid_;
};

}  // namespace rowtune
