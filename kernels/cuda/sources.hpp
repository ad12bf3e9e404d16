#pragma once
// The kernel headers, embedded in the program: NVRTC is given them under the names that they include each other by.

#include <string>
#include <string_view>
#include <vector>

#include "kernels/words.hpp"

namespace rowtune::cuda {

struct Source {
  const char* name;
  const char* text;
};

const std::vector<Source>& embedded_sources();

/// 64-bit FNV-1a, as 16 hexadecimal digits.
std::string fingerprint_of(std::string_view text);

/// C++ without its comments, indentation and empty lines.
std::string without_comments(std::string_view code);

/// Of every header that kernels of this operation are made of, but for comments, and of the flags they are compiled
/// with.
std::string kernel_fingerprint(Operation op);

/// Flags of the kernels: language level, no contraction (an fma where the code says so, nowhere else).
const std::vector<std::string>& compile_flags();

}  // namespace rowtune::cuda
