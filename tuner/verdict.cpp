#include "tuner/verdict.hpp"

#include <cmath>

namespace rowtune {

std::string word_of(PairedComparison::Verdict verdict) {
  switch (verdict) {
    case PairedComparison::Verdict::faster:
      return "FASTER";
    case PairedComparison::Verdict::slower:
      return "SLOWER";
    case PairedComparison::Verdict::tie:
      return "SAME";
    default:
      return "UNSURE";
  }
}

std::string verdict_by_intervals(const Estimate& before, const Estimate& after, double margin) {
  const double ratio = after.median / before.median;
  const bool apart = after.low > before.high || after.high < before.low;
  if (apart && ratio > 1 + margin) return "SLOWER";
  if (apart && ratio < 1 - margin) return "FASTER";
  const bool narrow = before.high <= before.low * (1 + 2 * margin) && after.high <= after.low * (1 + 2 * margin);
  return narrow || std::abs(ratio - 1) <= margin ? "SAME" : "UNSURE";
}

}  // namespace rowtune
