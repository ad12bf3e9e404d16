#pragma once
// The words of `verify` and `compare`.

#include <string>

#include "db/records.hpp"
#include "tuner/statistics.hpp"

namespace rowtune {

/// FASTER, SLOWER, SAME or UNSURE: the config of the samples against that of the reference, by their pairs.
std::string word_of(PairedComparison::Verdict verdict);

/// The same of `after` against `before`, by their two intervals alone: nothing of them shares a moment.
std::string verdict_by_intervals(const Estimate& before, const Estimate& after, double margin);

}  // namespace rowtune
