#include "stability/orders.hpp"

#include <fmt/format.h>

namespace rowtune::stability {

std::string to_string(const Summation& summation) {
  if (summation.order == Order::pairwise) return "pairwise";
  if (summation.order == Order::lanes) return fmt::format("lanes{}", summation.lanes);
  return "sequential";
}

int ceil_log2(std::int64_t n) {
  int power = 0;
  while ((std::int64_t{1} << power) < n) ++power;
  return power;
}

double depth_of(const Summation& summation, std::int64_t n) {
  if (summation.order == Order::pairwise) return ceil_log2(n) + 1;
  if (summation.order == Order::lanes)
    return static_cast<double>((n + summation.lanes - 1) / summation.lanes + ceil_log2(summation.lanes));
  return static_cast<double>(n);
}

}  // namespace rowtune::stability
