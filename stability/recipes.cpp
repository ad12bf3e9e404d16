#include "stability/recipes.hpp"

#include <algorithm>
#include <cmath>

#include "rowtune/testdata.cuh"
#include "stability/formats.hpp"

namespace rowtune::stability {

std::string to_string(Distribution distribution) {
  switch (distribution) {
    case Distribution::normal:
      return "normal";
    case Distribution::lognormal:
      return "lognormal";
    case Distribution::constant:
      return "constant";
    case Distribution::alternating:
      return "alternating";
    case Distribution::activations:
      break;
  }
  return "activations";
}

std::string to_string(Arrangement arrangement) {
  switch (arrangement) {
    case Arrangement::shuffled:
      return "shuffled";
    case Arrangement::ascending:
      return "ascending";
    case Arrangement::descending:
      return "descending";
    case Arrangement::outlier_first:
      return "outlier_first";
    case Arrangement::outlier_last:
      break;
  }
  return "outlier_last";
}

std::uint64_t Random::bits() { return mix_bits(state_++ * 0x9e3779b97f4a7c15ULL); }

double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  for (;;) {
    const double a = 2 * uniform() - 1, b = 2 * uniform() - 1, s = a * a + b * b;
    if (s >= 1 || s == 0) continue;
    const double factor = std::sqrt(-2 * std::log(s) / s);
    spare_ = b * factor;
    has_spare_ = true;
    return a * factor;
  }
}

std::vector<double> make_row(const Recipe& recipe, Dtype dtype) {
  Random random(recipe.seed);
  std::vector<double> x(static_cast<std::size_t>(recipe.n));
  for (std::size_t i = 0; i < x.size(); ++i) {
    double z = 0;
    switch (recipe.distribution) {
      case Distribution::normal:
        z = random.normal();
        break;
      case Distribution::lognormal:
        z = std::exp(1.5 * random.normal());
        break;
      case Distribution::constant:
        z = 0.1;
        break;
      case Distribution::alternating:
        z = i % 2 == 0 ? 1 : -1;
        break;
      case Distribution::activations:
        z = i % 97 == 5 ? 40 * (1 + 0.2 * random.normal()) : random.normal();
        break;
    }
    x[i] = z;
  }
  switch (recipe.arrangement) {
    case Arrangement::shuffled:
      break;
    case Arrangement::ascending:
      std::sort(x.begin(), x.end());
      break;
    case Arrangement::descending:
      std::sort(x.begin(), x.end(), [](double a, double b) { return b < a; });
      break;
    case Arrangement::outlier_first:
      x.front() = 1e5;
      break;
    case Arrangement::outlier_last:
      x.back() = 1e5;
      break;
  }
  for (double& v : x) v = round_to(dtype, static_cast<long double>(recipe.scale * (recipe.mean + v)));
  return x;
}

}  // namespace rowtune::stability
