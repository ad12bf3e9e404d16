#include <string_view>

#include "kernels/emulator/instantiations.hpp"

namespace rowtune::emulator {

std::string host_source(const cuda::Plan& plan) {
  std::string text;
  std::string_view rest = plan.source;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n') == std::string_view::npos ? rest.size() : rest.find('\n') + 1;
    std::string line(rest.substr(0, end));
    rest.remove_prefix(end);
    if (line.starts_with("#include")) continue;
    if (const std::size_t at = line.find("extern \"C\" __global__"); at != std::string::npos)
      line.replace(at, 21, "static");
    if (const std::size_t at = line.find("__launch_bounds__("); at != std::string::npos)
      line.erase(at, line.find(')', at) + 1 - at);
    text += line;
  }
  return text;
}

std::uint64_t source_key(const cuda::Plan& plan) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const char c : host_source(plan)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

}  // namespace rowtune::emulator
