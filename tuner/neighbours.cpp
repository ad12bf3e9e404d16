#include "tuner/neighbours.hpp"

#include <algorithm>
#include <cmath>

namespace rowtune {
namespace {

constexpr std::size_t workloads_to_ask = 8;

/// In doublings. Columns decide the algorithm, rows the parallelism; f16 and bf16 differ in little but arithmetic, f32
/// in the elements of an access.
double distance(const Workload& a, const Workload& b) {
  const auto doublings = [](std::int64_t x, std::int64_t y) {
    return std::abs(std::log2(static_cast<double>(std::max<std::int64_t>(x, 1)) /
                              static_cast<double>(std::max<std::int64_t>(y, 1))));
  };
  const double dtypes = a.dtype == b.dtype ? 0 : size_of(a.dtype) == size_of(b.dtype) ? 0.3 : 1.0;
  return 0.4 * doublings(a.shape.rows, b.shape.rows) + 0.6 * doublings(a.shape.cols, b.shape.cols) + dtypes;
}

/// Accesses of the same bytes.
Config in_words_of(Config config, Dtype from, Dtype to) {
  for (AxisValue& axis : config.axes)
    if (axis.letter == 'v') axis.value = std::max(1, axis.value * size_of(from) / size_of(to));
  return config;
}

}  // namespace

void Neighbours::add(const Workload& workload, const std::vector<Contender>& contenders) {
  std::erase_if(known_, [&](const Known& known) { return known.workload == workload; });
  if (contenders.empty()) return;
  std::vector<Contender> sorted = contenders;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.time_us < b.time_us; });
  Known known{workload, {}};
  for (const Contender& contender : sorted)
    known.slowdowns.emplace_back(contender.config, std::log(contender.time_us / sorted.front().time_us));
  known_.push_back(std::move(known));
}

std::vector<std::pair<double, const Neighbours::Known*>> Neighbours::nearest(const Workload& workload) const {
  std::vector<std::pair<double, const Known*>> near;
  for (const Known& known : known_)
    if (known.workload.op == workload.op && known.workload.regime == workload.regime &&
        known.workload.options == workload.options && known.workload != workload)
      near.emplace_back(distance(workload, known.workload), &known);
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return near;
}

std::vector<Hint> Neighbours::hints(const Workload& workload) const {
  std::vector<Hint> hints;
  auto near = nearest(workload);
  if (near.size() > workloads_to_ask) near.resize(workloads_to_ask);
  for (const auto& [apart, known] : near)
    for (const auto& [config, slowdown] : known->slowdowns)
      hints.push_back({in_words_of(config, known->workload.dtype, workload.dtype), slowdown, std::exp(-apart)});
  return hints;
}

std::vector<std::string> Neighbours::winners(const Workload& workload, std::size_t count) const {
  for (const auto& [apart, known] : nearest(workload)) {
    if (known->workload.dtype != workload.dtype) continue;
    std::vector<std::string> names;
    for (const auto& [config, slowdown] : known->slowdowns)
      if (names.size() < count) names.push_back(config.name());
    return names;
  }
  return {};
}

}  // namespace rowtune
