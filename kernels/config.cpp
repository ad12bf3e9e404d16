#include "kernels/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "kernels/errors.hpp"

namespace rowtune {

int Config::get(char letter, int otherwise) const {
  for (const auto& axis : axes)
    if (axis.letter == letter) return axis.value;
  return otherwise;
}

std::string Config::name() const {
  std::string text = algorithm;
  for (const auto& axis : axes) text += fmt::format(".{}{}", axis.letter, axis.value);
  return text;
}

Config split_config_name(std::string_view name) {
  const auto refuse = [&](std::string_view why) {
    throw UsageError(
        fmt::format("config '{}': {}; a name is an algorithm and its axes, such as warp.b128.r2.v8.s1", name, why));
  };
  Config config;
  std::size_t at = name.find('.');
  config.algorithm = std::string(name.substr(0, at));
  if (config.algorithm.empty() || !std::all_of(config.algorithm.begin(), config.algorithm.end(), [](unsigned char c) {
        return std::islower(c) || std::isdigit(c) || c == '_';
      }))
    refuse("the algorithm is not a word of a-z, 0-9 and _");
  while (at != std::string_view::npos) {
    const auto next = name.find('.', at + 1);
    const auto part = name.substr(at + 1, next == std::string_view::npos ? next : next - at - 1);
    AxisValue axis;
    if (part.size() < 2 || !std::islower(static_cast<unsigned char>(part[0])) ||
        !std::isdigit(static_cast<unsigned char>(part[1])) || (part[1] == '0' && part.size() > 2))
      refuse(fmt::format("'{}' is not a letter and a number", part));
    axis.letter = part[0];
    const auto end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data() + 1, end, axis.value);
    if (error != std::errc() || stop != end) refuse(fmt::format("'{}' is not a letter and a number", part));
    if (config.get(axis.letter, -1) != -1) refuse(fmt::format("axis '{}' stands twice", axis.letter));
    config.axes.push_back(axis);
    at = next;
  }
  return config;
}

}  // namespace rowtune
