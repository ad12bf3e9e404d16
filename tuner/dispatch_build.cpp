// From the leaderboard to tables: grouping, the kernels that serve all tuned shapes, the entries.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "kernels/cuda/known_devices.hpp"
#include "kernels/cuda/plan.hpp"
#include "tuner/dispatch_measured.hpp"
#include "tuner/parallel.hpp"

namespace rowtune {
namespace {

auto order_of(const DispatchTable& t) {
  return std::tuple(t.device_model, t.device_limits, t.op, t.dtype, t.regime, t.options);
}

/// The row of the config that serves an entry, as evidence beside the winner.
DispatchEvidence evidence_of(const db::BestRow& row, const MeasuredWorkload& w) {
  const auto& winner = w.configs.at(w.best);
  DispatchEvidence e;
  e.time_us = row.time_us.value();
  e.time_lo_us = row.time_lo_us, e.time_hi_us = row.time_hi_us;
  e.ceiling_fraction = row.ceiling_fraction;
  e.base_config = row.base_config, e.base_time_us = row.base_time_us, e.gain_over_base = row.gain_over_base;
  e.ties = winner.ties;
  e.best_config = w.best;
  e.regret = std::max(0.0, e.time_us / w.best_us() - 1);
  e.max_error_ulp = row.max_error_ulp, e.decided = winner.decided;
  e.toolchain = row.toolchain, e.source_fingerprint = row.source_fingerprint, e.protocol = row.protocol;
  return e;
}

DispatchEntry entry_of(const MeasuredWorkload& w, const std::string& config, int kernel) {
  DispatchEntry entry;
  entry.rows = w.shape.rows, entry.cols = w.shape.cols, entry.alignment = w.alignment;
  entry.kernel = kernel;
  entry.config = config;
  entry.evidence = evidence_of(w.configs.at(config), w);
  return entry;
}

/// Kernels that may serve a workload: within the regret, and not slower than the base. The first is the fastest.
std::vector<KernelChoice> choices_for(const MeasuredTable& table, const MeasuredWorkload& w, double max_regret) {
  std::vector<KernelChoice> all;
  for (const auto& [name, row] : w.configs) {
    const auto kernel = kernel_of(table, name, w.shape);
    if (!kernel || (row.base_time_us && *row.time_us > *row.base_time_us)) continue;
    all.push_back({*kernel, std::max(0.0, *row.time_us / w.best_us() - 1), name});
  }
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return std::tuple(a.regret, a.config != w.best, a.config) < std::tuple(b.regret, b.config != w.best, b.config);
  });
  // Where only kernels that no table holds come so close, the fastest of the others has to do.
  const double limit = all.empty() ? 0 : std::max(max_regret, all.front().regret);
  std::erase_if(all, [&](const auto& c) { return c.regret > limit; });
  return all;
}

/// Gives kernels up, those first whose workloads lose the least time in all by going to the base, until few enough are
/// left. `chosen` holds each workload's kernel; -1 is the base.
void give_up_kernels(const MeasuredTable& table, std::vector<DispatchKernel>& kernels, std::vector<int>& chosen,
                     const std::vector<std::string>& configs, int most) {
  while (static_cast<int>(kernels.size()) > most) {
    std::vector<double> loss(kernels.size(), 0);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] < 0) continue;
      const auto& w = table.workloads[i];
      const double base = w.time_of(w.base).value_or(10 * w.best_us());
      loss[static_cast<std::size_t>(chosen[i])] += base / *w.time_of(configs[i]) - 1;
    }
    const int least = static_cast<int>(std::min_element(loss.begin(), loss.end()) - loss.begin());
    kernels.erase(kernels.begin() + least);
    for (int& kernel : chosen) kernel = kernel == least ? -1 : kernel > least ? kernel - 1 : kernel;
  }
}

DispatchTables tables_of(const std::vector<MeasuredTable>& measured, const DispatchSettings& settings) {
  DispatchTables all;
  all.tables.resize(measured.size());
  for_each_index(measured.size(), [&](std::size_t i) { all.tables[i] = build_table(measured[i], settings); });
  return all;
}

}  // namespace

std::optional<double> MeasuredWorkload::time_of(const std::string& config) const {
  const auto at = configs.find(config);
  return at == configs.end() ? std::nullopt : at->second.time_us;
}

std::optional<double> slowdown_at(const MeasuredWorkload& w, const std::string& config) {
  if (w.failed.contains(config)) return std::numeric_limits<double>::infinity();
  const auto time = w.time_of(config);
  return time ? std::optional(std::max(0.0, *time / w.best_us() - 1)) : std::nullopt;
}

std::optional<DispatchKernel> kernel_of(const MeasuredTable& table, const std::string& config, const Shape& shape) {
  if (!table.device) return DispatchKernel{config, 0, true};
  const Config parsed = split_config_name(config);
  if (!cuda::family_of(parsed.algorithm)) return std::nullopt;
  const Workload w{table.head.op, table.head.dtype, shape, table.head.regime, table.head.options};
  const auto k = cuda::kernel_for(w, parsed);
  return DispatchKernel{config, k.vectors, k.ragged};
}

std::vector<MeasuredTable> measured_tables(const std::vector<db::BestRow>& leaderboard,
                                           const std::set<db::DeviceWorkload>& unswept) {
  struct Group {
    MeasuredTable table;
    std::map<Shape, MeasuredWorkload> by_shape;
  };
  std::map<decltype(order_of({})), Group> groups;
  for (const auto& row : leaderboard) {
    if (row.op == to_string(Operation::copy) || !row.eligible) continue;
    MeasuredTable table;
    const auto workload = row.workload();
    auto& head = table.head;
    head.device_model = row.device_model, head.device_limits = row.device_limits;
    head.op = workload.op, head.dtype = workload.dtype, head.regime = workload.regime;
    head.options = workload.options;
    if (is_cuda(head.device_limits)) table.device = cuda::device_of_limits(head.device_limits);
    auto& group = groups.try_emplace(order_of(head), Group{table, {}}).first->second;
    auto& w = group.by_shape[workload.shape];
    w.shape = workload.shape;
    w.alignment = alignment_of(workload.shape, workload.dtype);
    w.base = row.base_config;
    if (!row.time_us) {
      w.failed.insert(row.config);
      continue;
    }
    if (row.rank == 1) w.best = row.config;
    w.configs.emplace(row.config, row);
    w.swept = !unswept.contains({row.device_model, row.device_limits, workload});
  }
  std::vector<MeasuredTable> all;
  for (auto& [key, group] : groups) {
    std::map<std::tuple<std::int64_t, std::int64_t, int>, MeasuredWorkload> places;
    // Where nobody gave the size of a space, as in a file that was put together by other means, all are as good.
    const bool any_swept = std::any_of(group.by_shape.begin(), group.by_shape.end(),
                                       [](const auto& each) { return each.second.swept && !each.second.best.empty(); });
    for (auto& [shape, w] : group.by_shape) {
      if (w.best.empty()) continue;
      if (!any_swept) w.swept = true;
      if (!w.swept && w.configs.size() < least_of_unswept) continue;
      // The base goes first where the winner is slower by its own median.
      if (const auto base = w.time_of(w.base); base && *base < w.best_us()) w.best = w.base;
      const auto order = [](const MeasuredWorkload& m) {
        return std::tuple(!m.swept, m.shape.ld - m.shape.cols, m.shape.off);
      };
      const auto [at, added] = places.try_emplace({shape.cols, shape.rows, w.alignment}, w);
      if (!added && order(w) < order(at->second)) at->second = w;
    }
    for (auto& [place, w] : places) group.table.workloads.push_back(std::move(w));
    if (!group.table.workloads.empty()) all.push_back(std::move(group.table));
  }
  return all;
}

MeasuredTable only_swept(const MeasuredTable& measured) {
  MeasuredTable tuned = measured;
  std::erase_if(tuned.workloads, [](const MeasuredWorkload& w) { return !w.swept; });
  return tuned;
}

DispatchTable build_table(const MeasuredTable& measured, const DispatchSettings& settings) {
  DispatchTable table = measured.head;
  const MeasuredTable tuned = only_swept(measured);
  std::vector<std::vector<KernelChoice>> candidates;
  for (const auto& w : tuned.workloads) candidates.push_back(choices_for(tuned, w, settings.max_regret));
  const auto picks = fewest_kernels(candidates);

  std::set<DispatchKernel> distinct;
  for (std::size_t i = 0; i < picks.size(); ++i)
    if (!candidates[i].empty()) distinct.insert(candidates[i][picks[i]].kernel);
  table.kernels.assign(distinct.begin(), distinct.end());
  std::vector<int> chosen;
  std::vector<std::string> configs;
  for (std::size_t i = 0; i < picks.size(); ++i) {
    if (candidates[i].empty()) {
      chosen.push_back(-1), configs.push_back(tuned.workloads[i].base);
      continue;
    }
    const auto& choice = candidates[i][picks[i]];
    const auto at = std::lower_bound(table.kernels.begin(), table.kernels.end(), choice.kernel);
    chosen.push_back(static_cast<int>(at - table.kernels.begin())), configs.push_back(choice.config);
  }
  give_up_kernels(tuned, table.kernels, chosen, configs, settings.max_kernels);
  for (std::size_t i = 0; i < picks.size(); ++i) {
    const auto& w = tuned.workloads[i];
    const std::string& config = chosen[i] < 0 ? w.base : configs[i];
    if (w.time_of(config)) table.entries.push_back(entry_of(w, config, chosen[i]));
  }
  add_regions(measured, settings, table);
  return table;
}

DispatchTables dispatch_tables(const std::vector<db::BestRow>& leaderboard, const DispatchSettings& settings) {
  return tables_of(measured_tables(leaderboard), settings);
}

DispatchTables dispatch_tables(const db::Database& database, Regime regime, const db::BestQuery& only,
                               const DispatchSettings& settings) {
  auto query = only;
  query.regime = regime;
  return tables_of(measured_tables(database.leaderboard(query), database.unswept(query)), settings);
}

}  // namespace rowtune
