#include "kernels/cpu/processor.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <string_view>

namespace rowtune::cpu {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::int64_t leading_number(std::string_view text) {
  const auto at = text.find_first_of("0123456789");
  std::int64_t value = 0;
  if (at != text.npos) std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

/// The value of the first line `key ... : value`, or nothing.
std::string value_in(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == line.npos || !line.starts_with(key)) continue;
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == line.npos ? "" : line.substr(start);
  }
  return "";
}

std::int64_t in_bytes(const std::string& size) {  // `48K`
  return leading_number(size) * (size.ends_with('K') ? 1024 : size.ends_with('M') ? 1024 * 1024 : 1);
}

}  // namespace

Processor read_processor() {
  Processor p;
  p.model = value_in("/proc/cpuinfo", "model name");
  if (p.model.empty()) p.model = value_in("/proc/cpuinfo", "CPU implementer");
  if (p.model.empty()) p.model = "unknown processor";
  cpu_set_t set;
  CPU_ZERO(&set);
  p.threads =
      sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (p.threads < 1) p.threads = 1;
  for (int i = 0;; ++i) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", i);
    const std::string level = first_line(folder + "level");
    if (level.empty()) break;
    if (first_line(folder + "type") == "Instruction") continue;
    const std::int64_t bytes = in_bytes(first_line(folder + "size"));
    if (level == "1") p.l1_bytes = bytes;
    if (level == "2") p.l2_bytes = bytes;
    if (bytes > p.llc_bytes) p.llc_bytes = bytes;
  }
  p.memory_bytes = sysconf(_SC_PHYS_PAGES) * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  return p;
}

std::int64_t available_memory() {
  const std::int64_t kib = leading_number(value_in("/proc/meminfo", "MemAvailable"));
  return kib > 0 ? kib * 1024 : sysconf(_SC_AVPHYS_PAGES) * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace rowtune::cpu
