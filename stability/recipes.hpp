#pragma once
// The study's synthetic rows, as recipes: the same recipe and seed give the same numbers, bit for bit.

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/words.hpp"

namespace rowtune::stability {

enum class Distribution {
  normal,
  lognormal,    ///< exp of 1.5 times a normal
  constant,     ///< every element mean + 0.1 sd, so that it is not a round number
  alternating,  ///< mean + sd, mean - sd, ...
  activations   ///< a hidden state of a Transformer: small values, every 97th channel 40 times larger and one-sided
};
enum class Arrangement { shuffled, ascending, descending, outlier_first, outlier_last };

std::string to_string(Distribution distribution);
std::string to_string(Arrangement arrangement);

struct Recipe {
  Distribution distribution = Distribution::normal;
  Arrangement arrangement = Arrangement::shuffled;
  std::int64_t n = 4096;
  double mean = 0;   ///< in units of the spread
  double scale = 1;  ///< multiplies everything; the spread (sd before rounding) of `normal`
  std::uint64_t seed = 1;
};

/// The row, rounded to the dtype (infinite where it does not fit).
std::vector<double> make_row(const Recipe& recipe, Dtype dtype);

/// A stream of random numbers: splitmix64 and the polar method. No library distribution: those differ by platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();
  double uniform();  ///< in [0, 1)
  double normal();

 private:
  std::uint64_t state_;
  bool has_spare_ = false;
  double spare_ = 0;
};

}  // namespace rowtune::stability
