#pragma once
// What the processor noticed during a computation: the error bounds hold only without underflow and overflow.

#include <cfenv>

namespace rowtune::stability {

struct FloatFlags {
  bool underflow = false;  ///< a result was subnormal and inexact
  bool overflow = false;
  bool invalid = false;  ///< inf - inf, 0/0, ...
  bool any() const { return underflow || overflow || invalid; }
};

/// Clears the thread's flags; `seen()` tells what was raised since.
class FlagWatch {
 public:
  FlagWatch() { std::feclearexcept(FE_ALL_EXCEPT); }
  FloatFlags seen() const {
    return {std::fetestexcept(FE_UNDERFLOW) != 0, std::fetestexcept(FE_OVERFLOW) != 0,
            std::fetestexcept(FE_INVALID) != 0};
  }
};

}  // namespace rowtune::stability
