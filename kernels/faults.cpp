#include "kernels/faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/errors.hpp"

namespace rowtune {

const std::vector<std::string>& fault_names() {
  static const std::vector<std::string> names{"none",          "crash",   "kill",         "leave",
                                              "stall",         "garbage", "wrong_result", "compile_error",
                                              "illegal_write", "endless", "shared_memory"};
  return names;
}

Fault fault_of(std::string_view config, int attempt) {
  const char* value = std::getenv("ROWTUNE_FAULTS");
  std::string_view rest = value ? value : "";
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view entry = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t colon = std::min(entry.find(':'), entry.size());
    std::string_view name = entry.substr(0, colon);
    const bool once = name.ends_with('!');
    if (once) name.remove_suffix(1);
    const auto& names = fault_names();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || colon == entry.size())
      throw UsageError(
          fmt::format("ROWTUNE_FAULTS: '{}' is no FAULT:CONFIG; the faults are {}", entry, fmt::join(names, ", ")));
    if (config.starts_with(entry.substr(colon + 1)) && (!once || attempt == 1))
      return static_cast<Fault>(found - names.begin());
  }
  return Fault::none;
}

}  // namespace rowtune
