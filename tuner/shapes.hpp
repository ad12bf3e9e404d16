#pragma once
// The shapes that a sweep covers: presets, a list on the command line, or a file.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/words.hpp"

namespace rowtune {

class ShapeSet {
 public:
  /// `quick`, `llm`, `cliffs`, `SHAPE,SHAPE...` or the path of a file with one shape a line and # comments. Throws
  /// UsageError for a shape that is none or has no elements (with the line number in a file), EnvironmentError for an
  /// unreadable file.
  static ShapeSet parse(std::string_view text);

  /// The shapes of one operation, without repetitions. A preset for `copy` holds the ceilings of all its other shapes.
  std::vector<Shape> of(Operation op) const;
  const std::string& description() const { return description_; }  ///< `preset quick`, `2 shapes`, `file FILE`
  bool is_quick() const { return preset_ == Preset::quick; }

 private:
  enum class Preset { none, quick, llm, cliffs };
  Preset preset_ = Preset::none;
  std::vector<Shape> shapes_;  ///< without a preset: the same for every operation
  std::string description_;
};

}  // namespace rowtune
