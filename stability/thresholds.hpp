#pragma once
// Where the unshifted softmax first goes wrong, found by search over the representable logits.

#include <cstdint>
#include <vector>

#include "kernels/words.hpp"

namespace rowtune::stability {

enum class ThresholdKind {
  dominant,       ///< one logit x among n - 1 zeros: the smallest x >= 0 whose softmax is wrong
  equal,          ///< n equal logits x: the smallest x >= 0 (the sum overflows)
  equal_negative  ///< n equal logits -x: the smallest x >= 0 whose row is 0/0
};
const char* to_string(ThresholdKind kind);

struct Threshold {
  ThresholdKind kind;
  Dtype arithmetic;
  bool flush;  ///< the fast exponential, which flushes subnormal results to 0
  std::int64_t n;
  double found;      ///< the first logit, a number of the arithmetic type, that breaks the row
  double predicted;  ///< from the largest (smallest) number of the format alone, for comparison
};

/// A row is broken when an output is NaN, infinite, or 0 where the right value is a normal number of the type.
Threshold find_threshold(ThresholdKind kind, Dtype arithmetic, bool flush, std::int64_t n);

}  // namespace rowtune::stability
