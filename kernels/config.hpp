#pragma once
// A config: one point of a search space. Its name is readable and reversible: algorithm and axes in the order the
// algorithm declares them, such as `warp.b128.r2.v8.s1`. The name is what the database, the reports and people use.

#include <string>
#include <string_view>
#include <vector>

namespace rowtune {

struct AxisValue {
  char letter = 0;
  int value = 0;
  bool operator==(const AxisValue&) const = default;
};

struct Config {
  std::string algorithm;
  std::vector<AxisValue> axes;

  /// The value of an axis, or `otherwise` where the algorithm does not declare it.
  int get(char letter, int otherwise) const;
  int block_size() const { return get('b', 0); }     ///< threads of a block; cpu: threads
  int rows_per_warp() const { return get('r', 0); }  ///< rows a warp works on at once; cpu: rows in flight per thread
  int vector_width() const { return get('v', 0); }   ///< elements per access; cpu: SIMD vectors per step
  int split_count() const { return get('s', 0); }    ///< blocks that share a row; cpu: splits of a row
  std::string name() const;
  bool operator==(const Config&) const = default;
};

/// The shape of a name taken apart: no knowledge of what is legal. Throws UsageError.
Config split_config_name(std::string_view name);

}  // namespace rowtune
