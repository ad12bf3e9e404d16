#include "tuner/dispatch_evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "tuner/dispatch_measured.hpp"
#include "tuner/parallel.hpp"

namespace rowtune {

std::optional<double> Trial::regret() const {
  if (!time_us) return std::nullopt;
  return std::max(0.0, *time_us / best_us - 1);
}

EvaluationSummary summarise(const std::vector<Trial>& trials) {
  EvaluationSummary s;
  std::vector<double> regrets;
  for (const auto& trial : trials) {
    ++s.trials;
    s.base += trial.is_base;
    if (const auto regret = trial.regret())
      regrets.push_back(*regret);
    else
      ++s.unmeasured;
  }
  if (regrets.empty()) return s;
  std::sort(regrets.begin(), regrets.end());
  // The smallest regret that at least this share of the trials does not exceed.
  const auto quantile = [&](double share) {
    const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(regrets.size())));
    return regrets[std::max<std::size_t>(at, 1) - 1];
  };
  s.median = quantile(0.5), s.p95 = quantile(0.95), s.worst = regrets.back();
  return s;
}

bool is_beyond(const DispatchTable& table, const Shape& shape) {
  const auto outside = [&](std::int64_t DispatchEntry::*extent, std::int64_t asked) {
    const auto less = [&](const DispatchEntry& a, const DispatchEntry& b) { return a.*extent < b.*extent; };
    const auto [least, most] = std::minmax_element(table.entries.begin(), table.entries.end(), less);
    return least == table.entries.end() || asked < (*least).*extent || asked > (*most).*extent;
  };
  return outside(&DispatchEntry::cols, shape.cols) || outside(&DispatchEntry::rows, shape.rows);
}

namespace {

Trial without(const MeasuredTable& measured, std::size_t left_out, const DispatchSettings& settings) {
  const auto& w = measured.workloads[left_out];
  MeasuredTable rest = measured;
  rest.workloads.erase(rest.workloads.begin() + static_cast<std::ptrdiff_t>(left_out));
  DispatchTables tables;
  tables.tables.push_back(build_table(rest, settings));
  const auto& head = measured.head;
  const auto match = lookup(tables, head.device_model, head.op, head.dtype, w.shape, head.regime, head.options);
  Trial trial;
  trial.device_model = head.device_model, trial.op = head.op, trial.dtype = head.dtype, trial.shape = w.shape;
  trial.kind = match.kind;
  trial.config = match.config == "base" ? w.base : match.config;
  trial.is_base = trial.config == w.base;
  trial.beyond = is_beyond(tables.tables.front(), w.shape);
  trial.best_config = w.best, trial.best_us = w.best_us();
  trial.time_us = w.time_of(trial.config);
  return trial;
}

}  // namespace

std::vector<Trial> leave_one_out(const std::vector<db::BestRow>& leaderboard, const DispatchSettings& settings) {
  return leave_one_out(measured_tables(leaderboard), settings);
}

std::vector<Trial> leave_one_out(const std::vector<MeasuredTable>& tables, const DispatchSettings& settings) {
  std::vector<std::pair<const MeasuredTable*, std::size_t>> left_out;
  for (const auto& measured : tables) {
    const auto& all = measured.workloads;
    if (std::count_if(all.begin(), all.end(), [](const auto& w) { return w.swept; }) < 2) continue;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].swept) left_out.emplace_back(&measured, i);
  }
  std::vector<Trial> trials(left_out.size());
  for_each_index(trials.size(),
                 [&](std::size_t i) { trials[i] = without(*left_out[i].first, left_out[i].second, settings); });
  return trials;
}

std::vector<Shape> shapes_off_grid(const DispatchTable& table) {
  std::set<std::int64_t> cols;
  std::map<std::int64_t, std::set<std::int64_t>> rows_of;
  for (const auto& e : table.entries) {
    if (e.cols == 0 || e.rows == 0) continue;
    cols.insert(e.cols), rows_of[e.cols].insert(e.rows);
  }
  std::set<Shape> shapes;
  const auto add = [&](std::int64_t rows, std::int64_t c) {
    constexpr std::int64_t most_elements = std::int64_t{1} << 28;
    if (rows >= 1 && c >= 1 && rows * c <= most_elements) shapes.insert(Shape::of(rows, c));
  };
  const auto middle = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(a) * static_cast<double>(b))));
  };
  for (auto at = cols.begin(); at != cols.end(); ++at) {
    const auto& rows = rows_of[*at];
    // Between: tuned columns with other rows, and the middle of two neighbours, rounded to whole vectors.
    for (auto r = rows.begin(); std::next(r) != rows.end() && !rows.empty(); ++r) add(middle(*r, *std::next(r)), *at);
    if (const auto next = std::next(at); next != cols.end() && *next > *at + 16) {
      const auto c = middle(*at, *next) / 8 * 8;
      add(*rows.begin(), c), add(*rows.rbegin(), c);
    }
    // Odd: one column more, so that rows are ragged.
    add(*rows.rbegin(), *at + 1);
  }
  if (cols.empty()) return {};
  // Beyond.
  add(*rows_of[*cols.rbegin()].rbegin(), *cols.rbegin() * 3 / 2);
  add(*rows_of[*cols.begin()].rbegin(), std::max<std::int64_t>(1, *cols.begin() * 3 / 4));
  add(*rows_of[*cols.begin()].rbegin() * 3 / 2, *cols.begin());
  std::vector<Shape> all;
  for (const auto& shape : shapes) {
    const bool tuned = rows_of.contains(shape.cols) && rows_of[shape.cols].contains(shape.rows);
    if (!tuned) all.push_back(shape);
  }
  return all;
}

}  // namespace rowtune
