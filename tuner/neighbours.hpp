#pragma once
// What similar workloads tell about a new one. Two workloads are similar when operation, regime and options are the
// same and shape and dtype are near.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kernels/words.hpp"
#include "tuner/final.hpp"
#include "tuner/strategy.hpp"

namespace rowtune {

class Neighbours {
 public:
  /// The configs that ran right on a workload; replaces what was known of it.
  void add(const Workload& workload, const std::vector<Contender>& contenders);
  /// Of the workloads most similar to this one, which is not among them.
  std::vector<Hint> hints(const Workload& workload) const;
  /// Names of the fastest configs of the most similar workload of the same dtype.
  std::vector<std::string> winners(const Workload& workload, std::size_t count) const;

 private:
  struct Known {
    Workload workload;
    std::vector<std::pair<Config, double>> slowdowns;  ///< natural logarithms, the fastest first
  };
  std::vector<std::pair<double, const Known*>> nearest(const Workload& workload) const;

  std::vector<Known> known_;
};

}  // namespace rowtune
