#include "tuner/dispatch_refine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "tuner/dispatch_plane.hpp"

namespace rowtune {
namespace {

/// Configs that are measured beside the answer, and how many of them the table holds: with another one it may need one
/// more kernel.
constexpr std::size_t others = 4, others_in_table = 3;
constexpr double worth_a_try = 0.5;  ///< what one of them may be predicted to be slower than the best
constexpr std::size_t enough = 8;    ///< results of a place, beyond which only the answer is asked for
constexpr std::int64_t most_elements = std::int64_t{1} << 28;
constexpr double least_worth = 0.05;  ///< of a place: its piece's weight times the doubt

/// A contiguous shape in a piece, near its middle; none where rows of that class are strided there, or too large.
std::optional<Shape> shape_in(std::int64_t first_col, std::int64_t last_col, std::int64_t first_row,
                              std::int64_t last_row, bool ragged, Dtype dtype) {
  const std::int64_t step = 16 / size_of(dtype);
  const std::int64_t rows = std::clamp<std::int64_t>(std::llround(middle(first_row, last_row)), first_row, last_row);
  const std::int64_t at = std::llround(middle(first_col, last_col));
  const std::int64_t down = at / step * step, odd = at | 1;
  const auto choices = ragged ? std::vector{odd, odd - 2} : std::vector{down, down + step};
  for (const auto cols : choices)
    if (cols >= first_col && cols <= last_col && cols * rows <= most_elements && rows > 0) return Shape::of(rows, cols);
  return std::nullopt;
}

std::vector<std::string> names_of(const MeasuredTable& measured, const DispatchTable& table) {
  std::set<std::string> names;
  for (const auto& w : measured.workloads)
    for (const auto& [name, row] : w.configs) names.insert(name);
  for (const auto& kernel : table.kernels) names.insert(kernel.config);
  return {names.begin(), names.end()};
}

/// A shape that may be taken.
struct Candidate {
  Shape shape;
  Predictor::Place place;
  bool ragged;
  double weight;  ///< of its piece
  double doubt;   ///< 0: its answer was measured there; towards 1: far from there, or nowhere
};

std::vector<Candidate> candidates_of(const MeasuredTable& tuned, const DispatchTable& table) {
  const Plane plane = plane_of(tuned);
  const Predictor predictor(tuned, {});
  const LookupTable view(table);
  std::set<std::pair<std::int64_t, std::int64_t>> on_grid;
  for (const auto& w : tuned.workloads) on_grid.emplace(w.shape.rows, w.shape.cols);
  std::vector<Candidate> all;
  for (const bool ragged : {false, true}) {
    std::int64_t first_col = plane.least_cols;
    for (const auto last_col : plane.col_ends) {
      std::int64_t first_row = plane.least_rows;
      for (const auto last_row : plane.row_ends) {
        const auto shape = shape_in(first_col, last_col, first_row, last_row, ragged, tuned.head.dtype);
        first_row = last_row + 1;
        if (!shape || on_grid.contains({shape->rows, shape->cols})) continue;
        Candidate c{*shape, predictor.place(double(shape->rows), double(shape->cols), ragged), ragged, 0, 1};
        c.weight = std::sqrt(c.place.most);
        const int kernel = view.look_up(*shape).kernel;
        for (std::size_t i = 0; i < tuned.workloads.size(); ++i) {
          const auto& w = tuned.workloads[i];
          const auto& answer = kernel < 0 ? w.base : table.kernels[static_cast<std::size_t>(kernel)].config;
          if (w.time_of(answer)) c.doubt = std::min(c.doubt, 1 - c.place.terms[i].weight);
        }
        all.push_back(std::move(c));
      }
      first_col = last_col + 1;
    }
  }
  return all;
}

}  // namespace

std::vector<Shape> places_off_grid(const MeasuredTable& measured, const DispatchSettings& settings, std::size_t most) {
  const MeasuredTable tuned = only_swept(measured);
  const DispatchTable table = build_table(tuned, settings);
  auto candidates = candidates_of(tuned, table);
  std::vector<Shape> places;
  const auto worth = [](const Candidate& c) { return c.weight * c.doubt; };
  while (places.size() < most && !candidates.empty()) {
    const auto best = std::max_element(candidates.begin(), candidates.end(),
                                       [&](const auto& a, const auto& b) { return worth(a) < worth(b); });
    if (worth(*best) < least_worth) break;
    const Candidate taken = std::move(*best);
    candidates.erase(best);
    places.push_back(taken.shape);
    for (auto& c : candidates)
      c.doubt *= 1 - nearness(c.place.log_cols - taken.place.log_cols, c.place.log_rows - taken.place.log_rows,
                              c.ragged == taken.ragged);
  }
  return places;
}

Answers::Answers(const MeasuredTable& measured, const DispatchTable& table)
    : measured_(measured),
      table_(table),
      view_(table),
      configs_(names_of(measured, table)),
      predictor_(measured, configs_) {
  for (const auto& kernel : table.kernels) in_table_.insert(kernel.config);
  for (const auto& w : measured.workloads)
    if (!w.swept) off_grid_[w.shape] = &w;
}

std::string Answers::at(const Place& place) const {
  const int kernel = view_.look_up(place.workload.shape).kernel;
  return kernel < 0 ? place.base : table_.kernels[static_cast<std::size_t>(kernel)].config;
}

std::vector<std::string> Answers::wanted_at(const Place& place) const {
  const Shape& shape = place.workload.shape;
  const bool ragged = alignment_of(shape, table_.dtype) < 16 || shape.cols * size_of(table_.dtype) % 16 != 0;
  const auto asked = predictor_.place(static_cast<double>(shape.rows), static_cast<double>(shape.cols), ragged);
  const auto found = off_grid_.find(shape);
  std::vector<std::pair<double, std::size_t>> ranking;
  for (std::size_t i = 0; i < configs_.size(); ++i) {
    if (!place.is_legal(configs_[i]) || !kernel_of(measured_, configs_[i], shape)) continue;
    const auto fact = found == off_grid_.end() ? std::nullopt : slowdown_at(*found->second, configs_[i]);
    ranking.emplace_back(fact.value_or(predictor_.regret(asked, i)), i);
  }
  std::sort(ranking.begin(), ranking.end());

  const std::string answer = at(place);
  std::vector<std::string> wanted{answer};
  if (place.base != answer) wanted.push_back(place.base);
  const std::size_t certain = wanted.size();
  const auto add_best = [&](bool in_table, std::size_t most) {
    for (const auto& [slowdown, i] : ranking) {
      const auto& config = configs_[i];
      const bool hopeless = 1 + slowdown > (1 + worth_a_try) * (1 + ranking.front().first);
      if (wanted.size() >= certain + most || (hopeless && wanted.size() >= least_of_unswept)) return;
      if (in_table_.contains(config) == in_table && config != answer && config != place.base) wanted.push_back(config);
    }
  };
  if (place.known.size() < enough) {
    add_best(true, others_in_table);
    add_best(false, others);
  }
  std::erase_if(wanted, [&](const auto& config) { return !place.is_legal(config) || place.known.contains(config); });
  return wanted;
}

}  // namespace rowtune
