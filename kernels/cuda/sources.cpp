#include "kernels/cuda/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "kernels/cuda/plan.hpp"

namespace rowtune::cuda {

std::string fingerprint_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return fmt::format("{:016x}", hash);
}

std::string without_comments(std::string_view code) {
  std::string out;
  const auto ends_with_space = [&out] { return out.empty() || out.back() == '\n' || out.back() == ' '; };
  for (std::size_t i = 0; i < code.size(); ++i) {
    const std::string_view rest = code.substr(i);
    if (rest.starts_with("//")) {
      i += std::min(rest.find('\n'), rest.size()) - 1;
    } else if (rest.starts_with("/*")) {
      i += std::min(rest.find("*/", 2), rest.size() - 2) + 1;
      if (!ends_with_space()) out += ' ';
    } else if (code[i] == '\n') {
      while (!out.empty() && out.back() == ' ') out.pop_back();
      if (!out.empty() && out.back() != '\n') out += '\n';
    } else if (code[i] == ' ' || code[i] == '\t' || code[i] == '\r') {
      if (!ends_with_space()) out += ' ';
    } else if (code[i] == '"' ||
               (code[i] == '\'' && (i == 0 || std::isalnum(static_cast<unsigned char>(code[i - 1])) == 0))) {
      std::size_t end = i + 1;  // of a literal; an apostrophe behind a digit separates digits
      while (end < code.size() && code[end] != code[i]) end += code[end] == '\\' ? 2 : 1;
      out += code.substr(i, end - i + 1);
      i = end;
    } else {
      out += code[i];
    }
  }
  return out;
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
      all += std::string(source.name) + '\n' + without_comments(source.text);
  }
  for (const auto& flag : compile_flags()) all += flag + '\n';
  return fingerprint_of(all);
}

}  // namespace rowtune::cuda
