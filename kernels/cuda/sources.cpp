#include "kernels/cuda/sources.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cuda/plan.hpp"

namespace rowtune::cuda {

std::string fingerprint_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:016x}", hash);
}

const std::vector<std::string>& compile_flags() {
  static const std::vector<std::string> flags{"--std=c++17", "--fmad=false", "--device-as-default-execution-space"};
  return flags;
}

std::string kernel_fingerprint(Operation op) {
  // Headers of other operations, and those that only check results, do not touch this one's measurements.
  const auto own = operation_headers(op);
  std::vector<std::string> foreign{"oracle.cuh", "testdata.cuh", "tolerance.cuh"};
  for (const Operation other : all_operations())
    for (const auto& header : operation_headers(other))
      if (std::find(own.begin(), own.end(), header) == own.end()) foreign.push_back(header);
  std::string all;
  for (const auto& source : embedded_sources()) {
    const std::string name = std::string(source.name).substr(std::string_view("rowtune/").size());
    if (std::find(foreign.begin(), foreign.end(), name) == foreign.end())
      all += std::string(source.name) + '\n' + source.text;
  }
  for (const auto& flag : compile_flags()) all += flag + '\n';
  return fingerprint_of(all);
}

}  // namespace rowtune::cuda
